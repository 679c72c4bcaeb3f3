"""Pipelines: which rows belong to which, however the rows come, go, and supersede each other."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from domain.shared.pipeline import newest_of_keys
from domain.shared.work import WorkRequest
from resources.ledger.pipelines import new_pipeline_id
from tests.integration.resources.ledger.steps import FILL, FINITE, lease, statements


def request(key: str = "day", fingerprint: str = "f1", *pipelines: str, kind: str = FILL) -> WorkRequest:
    return WorkRequest(kind, key, fingerprint, pipelines=pipelines)


def pipelines_of(ledger, row) -> tuple[str, ...]:
    return ledger.pipelines.of([row.id]).get(row.id, ())


def keys(ledger, pipeline: str) -> list[tuple[str, str]]:
    return [(row.key, row.status) for row in ledger.pipelines.members([pipeline])[pipeline]]


def test_members__two_pipelines__are_whole_rows_oldest_first(ledger):
    (row, *_) = ledger.enqueue([request("b", "f", "y", "x"), request("c", "f", "y"), request("d")]).created
    ledger.enqueue([request("a", "f", "x", kind=FINITE)])
    found = ledger.pipelines.members(["x", "y", "nobody"])
    assert {name: [row.key for row in rows] for name, rows in found.items()} == {
        "x": ["b", "a"],
        "y": ["b", "c"],
        "nobody": [],
    }
    assert found["x"][0] == ledger.get(row.id)
    assert pipelines_of(ledger, row) == ("x", "y")


@pytest.mark.parametrize("fingerprint", ["f1", "f2"])
def test_enqueue__waiting_row__joins_further_pipelines(ledger, fingerprint):
    (row,) = ledger.enqueue([request("day", "f1", "a")]).created
    for _ in range(2):
        ledger.enqueue([request("day", fingerprint, "b")])
    assert pipelines_of(ledger, row) == ("a", "b")


def test_enqueue__running_row__joins_only_for_the_same_request(ledger):
    with lease(ledger, "day", fingerprints={"day": "f1"}) as held:
        ledger.enqueue([request("day", "f1", "a")])
        (behind,) = ledger.enqueue([request("day", "f2", "b")]).created
        assert (pipelines_of(ledger, held.work["day"]), pipelines_of(ledger, behind)) == (("a",), ("b",))


def test_retry__failed_row__its_new_generation_joins_its_pipelines(ledger, clock):
    ledger.enqueue([request("day", "f1", "a")])
    with lease(ledger, "day") as held:
        held.fail("day", "hopeless")
    assert ledger.enqueue([request("day", "f1", "b")]).counts["refused"] == 1
    assert keys(ledger, "b") == [], "a refused request joins nothing"
    assert pipelines_of(ledger, ledger.retry(held.work["day"].id)) == ("a",)
    with lease(ledger, "day"):
        pass
    clock.advance(days=100)
    assert ledger.purge(clock()) == 2
    assert keys(ledger, "a") == []


def test_defer__newer_request_waits__leaves_its_pipelines_to_it(ledger):
    ledger.enqueue([request("day", "f1", "a")])
    with lease(ledger, "day") as held:
        (newer,) = ledger.enqueue([request("day", "f2", "b")]).created
        held.defer("day", "source down")
    assert keys(ledger, "a") == [("day", "superseded"), ("day", "deferred")]
    assert pipelines_of(ledger, newer) == ("a", "b")


def test_inherit_unfinished__earlier_rows_failed__joins_their_pipelines(ledger):
    def fail(pipeline: str, fingerprint: str) -> None:
        ledger.enqueue([request("day", fingerprint, pipeline), request("other", fingerprint, "of another")])
        with lease(ledger, "day", "other") as held:
            held.fail("day", "implausible")

    fail("before", "f0")
    ledger.enqueue([request("day", "f1", "completed before")])
    with lease(ledger, "day"):
        pass
    fail("a", "f2")
    (cancelled,) = ledger.enqueue([request("day", "f4", "b")]).created
    ledger.cancel(cancelled.id)
    ledger.supersede(ledger.enqueue([request("day", "f5", "c")]).created)
    (row,) = ledger.enqueue([request("day", "f6", "d")]).created
    ledger.pipelines.inherit_unfinished(row)
    ledger.pipelines.inherit_unfinished(row)
    assert pipelines_of(ledger, row) == ("a", "b", "c", "d")


def test_members__many_rows_and_pipelines__is_a_handful_of_statements(ledger):
    rows = ledger.enqueue([request(f"d{n}", "f", "a", f"c{n}") for n in range(1_100)]).created
    with statements(ledger) as sent:
        found = ledger.pipelines.of([row.id for row in rows] * 2)
        assert len(ledger.pipelines.members(["a", *(f"c{n}" for n in range(1_100))])["a"]) == 1_100
    assert {len(names) for names in found.values()} == {2}
    assert len(sent) < 20


def test_new_pipeline_id__later_ones__sort_behind_and_never_repeat(monkeypatch):
    assert len({new_pipeline_id() for _ in range(1_000)}) == 1_000
    moments = iter([1_000_000_000, 2_000_000_000_000, 3_000_000_000_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    ids = [new_pipeline_id() for _ in range(3)]
    assert ids == sorted(ids)
    assert {len(one) for one in ids} == {26}
    assert set("".join(ids)) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def counts(ledger, pipeline: str) -> dict[tuple[str, str], tuple[int, int]]:
    found = ledger.pipelines.status_counts([pipeline])[pipeline]
    return {(one.kind, one.status): (one.number, one.counting) for one in found}


def test_status_counts__key_was_tried_again__only_its_newest_row_counts(ledger, clock):
    ledger.enqueue(
        [request(key, "f", "p") for key in ("a", "b", "c")] + [request("d", "f", "p", kind=FINITE)]
    )
    with lease(ledger, "a", "b", run="1") as held:
        held.fail("a", "hopeless")
        held.complete("b")
    assert counts(ledger, "p") == {
        (FILL, "queued"): (1, 1),
        (FILL, "failed"): (1, 1),
        (FILL, "completed"): (1, 1),
        (FINITE, "queued"): (1, 1),
    }
    clock.advance(seconds=1)
    ledger.retry(held.work["a"].id)
    assert counts(ledger, "p")[FILL, "failed"] == (1, 0)
    assert counts(ledger, "p")[FILL, "queued"] == (2, 2)


def test_status_counts__pipelines_share_keys__each_counts_the_newest_of_its_own(ledger, clock):
    for pipelines in (("p", "q"), ("p",), ("q",), ("p", "q")):
        ledger.enqueue([request(key, f"f{clock()}", *pipelines) for key in ("a", "b")])
        with lease(ledger, "a", "b") as held:
            held.fail("a", "hopeless")
            held.complete("b")
        clock.advance(seconds=1)
    (row,) = ledger.enqueue([request("a", "last", "p")]).created
    ledger.supersede([row])
    members = ledger.pipelines.members(["p", "q"])
    for name in ("p", "q"):
        counting = Counter(row.status for row in newest_of_keys(members[name]))
        found = {status: one for (_, status), one in counts(ledger, name).items()}
        assert found == {
            status: (number, counting[status])
            for status, number in Counter(row.status for row in members[name]).items()
        }
    assert counts(ledger, "p")[FILL, "superseded"] == (1, 0)
    assert counts(ledger, "q")[FILL, "failed"] == (3, 1)


def test_status_counts__times__span_what_counts(ledger, clock):
    begun = clock()
    ledger.enqueue([request("a", "f", "p")])
    with lease(ledger, "a") as held:
        clock.advance(seconds=5)
        held.complete("a")
    [one] = ledger.pipelines.status_counts(["p", "unknown"])["p"]
    assert (one.started_at, one.finished_at, one.updated_at) == (begun, clock(), clock())


def test_status_counts__claimed_and_released_at_one_moment__differ(ledger):
    ledger.enqueue([request("a", "f", "p")])
    before = ledger.pipelines.status_counts(["p"])
    (row,) = ledger.claim(FILL, holder="worker:1", limit=1)
    ledger.release(row)
    assert ledger.pipelines.status_counts(["p"]) != before


def test_status_counts__many_pipelines__are_one_query(ledger):
    ledger.enqueue([request("a", "f", *(f"p{number}" for number in range(50)))])
    with statements(ledger) as sent:
        assert len(ledger.pipelines.status_counts([f"p{number}" for number in range(50)])) == 50
    assert len([one for one in sent if "SELECT" in one]) == 1


def test_newest__pages__are_stable_and_of_one_domain(ledger):
    ledger.enqueue([request(key, "f", f"p{key}") for key in "abc"] + [request("d", "f", "pd", kind=FINITE)])
    assert ledger.pipelines.newest(2) == ["pd", "pc"]
    assert ledger.pipelines.newest(2, before="pc") == ["pb", "pa"]
    assert ledger.pipelines.newest(9, kind_prefix="market.") == ["pc", "pb", "pa"]


def test_page__some_members__are_oldest_first(ledger):
    ledger.enqueue([request(key, "f", "p") for key in "abc"])
    found = [[row.key for row in ledger.pipelines.page("p", 2, offset)] for offset in (0, 2, 4)]
    assert found == [["a", "b"], ["c"], []]


def test_get_all__ids__are_rows_by_id(ledger):
    (row,) = ledger.enqueue([request("a")]).created
    assert ledger.get_all([row.id, row.id + 1, 10**20, -1]) == {row.id: ledger.get(row.id)}
