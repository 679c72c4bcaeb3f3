"""Wishes: what each does to a key that is unknown, waiting, running or finished."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger

FILL = "market.fill"


def request(key: str = "day", fingerprint: str = "f1", **more: object) -> WorkRequest:
    return WorkRequest(FILL, key, fingerprint, **more)


def ended(ledger: Ledger, key: str = "day", verb: str = "complete") -> None:
    with ledger.lease(FILL, [key], f"run that will {verb}", heartbeat=False) as lease:
        if verb == "fail":
            lease.fail(key, "hopeless")
        elif verb == "skip":
            lease.skip(key, "closed")


def test_a_new_key_waits_as_the_wish_says(ledger, clock):
    later = clock() + timedelta(hours=1)
    report = ledger.enqueue(
        [request(reason_code="missing", params={"table": "daily"}, tenant="a", priority=3, not_before=later)]
    )
    row = ledger.get(report.created[0].id)
    assert row == report.created[0]
    assert (row.status, row.reason_code, row.params, row.tenant, row.priority, row.not_before) == (
        "queued", "missing", {"table": "daily"}, "a", 3, later,
    )  # fmt: skip
    assert row.created_at == clock()
    assert row.finished_at is row.started_at is None


def test_the_same_wishes_again_write_nothing(ledger, clock):
    items = [request(f"d{n}", params={"n": n}) for n in range(5)]
    first = ledger.enqueue(items)
    clock.advance(minutes=5)
    assert ledger.enqueue(items).counts == {"created": 0, "updated": 0, "absorbed": 5, "refused": 0}
    assert ledger.get(first.created[0].id) == first.created[0]
    assert [event.event for event in ledger.events(first.created[0].id)] == ["created"]


def test_the_last_of_two_wishes_for_one_key_counts(ledger):
    report = ledger.enqueue([request(fingerprint="f1"), request(fingerprint="f2")])
    assert [row.fingerprint for row in report.created] == ["f2"]


def test_the_same_key_of_another_kind_is_other_work(ledger):
    assert len(ledger.enqueue([request(), WorkRequest("records.hook", "day", "f1")]).created) == 2


def test_a_waiting_row_takes_the_newer_wish(ledger, clock):
    (row,) = ledger.enqueue([request(not_before=clock() + timedelta(hours=6))]).created
    (updated,) = ledger.enqueue([request(fingerprint="f2", priority=9, params={"a": 1})]).updated
    assert updated.id == row.id
    assert (updated.fingerprint, updated.priority, updated.params) == ("f2", 9, {"a": 1})
    assert updated.not_before == clock(), "the old wish's date went with the old wish"
    assert ledger.get(row.id) == updated


def test_a_new_wish_does_not_shorten_a_backoff(ledger, clock):
    ledger.enqueue([request()])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
        lease.defer("day", "source down")
    (deferred,) = ledger.find(status="deferred")
    (updated,) = ledger.enqueue([request(fingerprint="f2", reason_code="missing")]).updated
    assert updated.not_before == deferred.not_before > clock()
    assert updated.attempts == 1
    assert updated.reason_code == "transient", "why it waits is still said"


def test_a_new_wish_does_not_disturb_a_run_on_its_way(ledger, clock):
    ledger.enqueue([request()])
    (sent,) = ledger.dispatch(FILL, limit=1)
    (updated,) = ledger.enqueue([request(fingerprint="f2")]).updated
    assert updated.dispatch_id == sent.id
    assert updated.not_before == clock() + timedelta(seconds=120)


def test_a_running_row_absorbs_the_same_wish(ledger):
    with ledger.lease(FILL, ["day"], "run", heartbeat=False, fingerprints={"day": "f1"}):
        assert ledger.enqueue([request()]).counts["absorbed"] == 1


def test_a_different_wish_during_a_run_waits_until_the_run_has_ended(ledger):
    with ledger.lease(FILL, ["day"], "run", heartbeat=False, fingerprints={"day": "f1"}):
        (behind,) = ledger.enqueue([request(fingerprint="f2")]).created
        assert ledger.dispatch(FILL, limit=9) == []
        assert ledger.claim(FILL, holder="worker:a", limit=9) == []
    assert [sent.rows[0].id for sent in ledger.dispatch(FILL, limit=9)] == [behind.id]


def test_work_that_ended_well_is_wanted_again_at_once_the_first_time(ledger, clock):
    for verb in ("complete", "skip"):
        ledger.enqueue([request(verb)])
        ended(ledger, verb, verb)
        (again,) = ledger.enqueue([request(verb)]).created
        assert again.not_before == clock()


def test_generations_that_do_not_help_wait_longer_and_longer(ledger, clock):
    waits = []
    for _ in range(6):
        (row,) = ledger.enqueue([request()]).created
        waits.append((row.not_before - clock()).total_seconds())
        ended(ledger)
    assert waits == [0, 0, 0, 30, 60, 120]


def test_a_key_that_stayed_well_for_a_while_is_done_at_once(ledger, clock):
    for _ in range(4):
        ledger.enqueue([request()])
        ended(ledger)
    clock.advance(minutes=4)
    assert ledger.enqueue([request("other")]).created[0].repeats == 0
    assert ledger.enqueue([request()]).created[0].not_before <= clock()


@pytest.mark.parametrize("why", ["another fingerprint", "a quiet while"])
def test_repeats_end_with(ledger, clock, why):
    for _ in range(4):
        ledger.enqueue([request()])
        ended(ledger)
    if why == "a quiet while":
        clock.advance(seconds=61)
    (row,) = ledger.enqueue([request(fingerprint="f2" if why == "another fingerprint" else "f1")]).created
    assert (row.repeats, row.not_before) == (0, clock())


def test_failed_work_is_born_again_only_with_a_new_fingerprint(ledger):
    ledger.enqueue([request()])
    ended(ledger, verb="fail")
    assert ledger.enqueue([request()]).counts["refused"] == 1
    assert ledger.enqueue([request(fingerprint="f2")]).counts["created"] == 1


def test_cancelled_work_is_born_again_only_with_a_new_fingerprint(ledger):
    (row,) = ledger.enqueue([request()]).created
    ledger.cancel(row.id)
    assert ledger.enqueue([request()]).counts["refused"] == 1
    assert ledger.enqueue([request(fingerprint="f2")]).counts["created"] == 1


@pytest.mark.parametrize("verb", ["complete", "skip", "fail"])
def test_an_event_is_done_once_whatever_came_of_it(ledger, verb):
    ledger.enqueue([request(once=True)])
    ended(ledger, verb=verb)
    report = ledger.enqueue([request(fingerprint="f2", once=True)])
    assert report.counts == {"created": 0, "updated": 0, "absorbed": 1, "refused": 0}


def test_params_of_more_than_four_kilobytes_are_refused_with_a_remedy(ledger):
    with pytest.raises(InvalidInput, match="4096 are allowed") as refusal:
        ledger.enqueue([request(params={"sql": "x" * 5_000})])
    assert refusal.value.remedy


def test_an_unknown_kind_is_refused_by_name(ledger):
    with pytest.raises(InvalidInput, match=r"market\.fil'"):
        ledger.enqueue([WorkRequest("market.fil", "day", "f1")])


def test_thousands_of_wishes_are_a_handful_of_statements(ledger):
    from sqlalchemy import event

    said: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    report = ledger.enqueue([request(f"d{n}") for n in range(3_000)])
    assert len(report.created) == 3_000
    assert {row.key: row.id for row in report.created} == {row.key: row.id for row in ledger.find(limit=None)}
    assert len(said) < 60
