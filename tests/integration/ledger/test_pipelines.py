"""Chains of work: which rows belong to which, however the rows come, go, and make way for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.shared.work import WorkRequest
from resources.database.engine import writing
from resources.ledger.pipelines import join, new_pipeline_id

FILL, HOOK = "market.fill", "records.hook"


def request(key: str = "day", fingerprint: str = "f1", *chains: str, kind: str = FILL) -> WorkRequest:
    return WorkRequest(kind, key, fingerprint, pipelines=chains)


def chains_of(ledger, row) -> tuple[str, ...]:
    return ledger.pipelines.of([row.id]).get(row.id, ())


def keys(ledger, chain: str) -> list[tuple[str, str]]:
    return [(row.key, row.status) for row in ledger.pipelines.members([chain])[chain]]


def test_a_new_row_belongs_to_the_chains_of_its_wish(ledger):
    (row,) = ledger.enqueue([request("day", "f1", "b", "a")]).created
    assert chains_of(ledger, row) == ("a", "b")
    assert keys(ledger, "a") == keys(ledger, "b") == [("day", "queued")]


def test_a_row_without_a_chain_has_none(ledger):
    (row,) = ledger.enqueue([request()]).created
    assert ledger.pipelines.of([row.id]) == {}
    assert ledger.pipelines.members(["nobody"]) == {"nobody": []}


def test_a_chain_s_rows_are_told_oldest_first_and_whole(ledger, clock):
    ledger.enqueue([request("b", "f", "x"), request("c", "f", "y")])
    clock.advance(minutes=1)
    ledger.enqueue([request("a", "f", "x", kind=HOOK)])
    found = ledger.pipelines.members(["x", "y"])
    assert [row.key for row in found["x"]] == ["b", "a"]
    assert [row.key for row in found["y"]] == ["c"]
    for row in (*found["x"], *found["y"]):
        assert row == ledger.get(row.id)


@pytest.mark.parametrize("fingerprint", ["f1", "f2"])
def test_a_waiting_row_joins_the_chains_that_come_later(ledger, fingerprint):
    (row,) = ledger.enqueue([request("day", "f1", "a")]).created
    ledger.enqueue([request("day", fingerprint, "b")])
    assert chains_of(ledger, row) == ("a", "b")


def test_a_running_row_joins_a_chain_that_wants_the_very_same(ledger):
    with ledger.lease(FILL, ["day"], "run", heartbeat=False, fingerprints={"day": "f1"}) as lease:
        ledger.enqueue([request("day", "f1", "a")])
        assert chains_of(ledger, lease.work["day"]) == ("a",)


def test_a_wish_for_something_else_during_a_run_has_a_row_of_its_own(ledger):
    with ledger.lease(FILL, ["day"], "run", heartbeat=False, fingerprints={"day": "f1"}) as lease:
        (behind,) = ledger.enqueue([request("day", "f2", "a")]).created
        assert (chains_of(ledger, lease.work["day"]), chains_of(ledger, behind)) == ((), ("a",))


def test_the_same_wish_again_changes_no_membership(ledger):
    (row,) = ledger.enqueue([request("day", "f1", "a")]).created
    for _ in range(3):
        ledger.enqueue([request("day", "f1", "a")])
    assert chains_of(ledger, row) == ("a",)


def test_a_chain_keeps_its_rows_when_they_end(ledger):
    ledger.enqueue([request("good", "f", "a"), request("bad", "f", "a")])
    with ledger.lease(FILL, ["good", "bad"], "run", heartbeat=False) as lease:
        lease.fail("bad", "hopeless")
    assert keys(ledger, "a") == [("good", "completed"), ("bad", "failed")]


def test_a_refused_wish_joins_nothing(ledger):
    """What that row did, it did for others."""
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
        lease.fail("day", "hopeless")
    assert ledger.enqueue([request("day", "f1", "b")]).counts["refused"] == 1
    assert keys(ledger, "b") == []


def test_a_new_generation_belongs_to_the_chain_that_wants_it_and_to_no_older_one(ledger):
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False):
        pass
    ledger.enqueue([request("day", "f2", "b")])
    assert (keys(ledger, "a"), keys(ledger, "b")) == ([("day", "completed")], [("day", "queued")])


def test_a_row_that_makes_way_leaves_its_chains_to_the_newer_one(ledger):
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
        (newer,) = ledger.enqueue([request("day", "f2", "b")]).created
        lease.defer("day", "source down")
    assert keys(ledger, "a") == [("day", "cancelled"), ("day", "deferred")]
    assert chains_of(ledger, newer) == ("a", "b")


def test_a_row_whose_holder_died_leaves_its_chains_to_the_newer_one(ledger, machine):
    ledger.enqueue([request("day", "f1", "a")])
    (held,) = ledger.claim(FILL, holder="worker:a", limit=1)
    (newer,) = ledger.enqueue([request("day", "f2", "b")]).created
    machine.advance(minutes=5)
    assert [swept.work.id for swept in ledger.sweep(finished_runs=())] == [held.id]
    assert chains_of(ledger, newer) == ("a", "b")
    assert keys(ledger, "a") == [("day", "cancelled"), ("day", "queued")]


def test_a_row_tried_again_by_a_person_joins_when_it_is_wished_for_again(ledger):
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
        lease.fail("day", "hopeless")
    again = ledger.retry(lease.work["day"].id)
    ledger.enqueue([request("day", "f1", "a")])
    assert "a" in chains_of(ledger, again)


def test_a_chain_forgets_the_rows_that_the_ledger_forgets(ledger, clock):
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False):
        pass
    clock.advance(days=100)
    assert ledger.purge(clock()) == 1
    assert keys(ledger, "a") == []


def test_many_rows_and_chains_are_a_handful_of_statements(ledger):
    from sqlalchemy import event

    rows = ledger.enqueue([request(f"d{n}", "f", "a", f"c{n}") for n in range(1_500)]).created
    said: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    found = ledger.pipelines.of([row.id for row in rows] * 2)
    assert {len(names) for names in found.values()} == {2}
    assert len(ledger.pipelines.members(["a", *(f"c{n}" for n in range(1_500))])["a"]) == 1_500
    assert len(said) < 20


def test_joining_at_the_same_time_is_joining_once(ledger, open_ledger):
    (row,) = ledger.enqueue([request("day", "f1")]).created
    ledgers = [open_ledger() for _ in range(6)]

    def joins(one) -> None:
        with writing(one.engine) as connection:
            join(connection, {row.id: [f"c{n}" for n in range(50)]})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(joins, ledgers))
    assert len(chains_of(ledger, row)) == 50


def test_ids_of_chains_are_short_words_that_sort_by_their_moment(monkeypatch):
    import time

    moments = iter([1_000_000_000, 2_000_000_000_000, 3_000_000_000_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    ids = [new_pipeline_id() for _ in range(3)]
    assert ids == sorted(ids)
    assert {len(one) for one in ids} == {26}
    assert set("".join(ids)) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def test_no_two_chains_have_the_same_id():
    assert len({new_pipeline_id() for _ in range(5_000)}) == 5_000


def test_what_is_done_at_last_joins_the_chains_that_waited_for_it_in_vain(ledger):
    def fails(chain: str, fingerprint: str) -> None:
        ledger.enqueue(
            [request("day", fingerprint, chain), request("other", fingerprint, f"{chain} of another")]
        )
        with ledger.lease(FILL, ["day", "other"], "run", heartbeat=False) as held:
            held.fail("day", "implausible")

    fails("before", "f0")
    ledger.enqueue([request("day", "f1", "done before")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False):
        pass
    fails("a", "f2")
    fails("b", "f3")
    (called_off,) = ledger.enqueue([request("day", "f4", "c")]).created
    ledger.cancel(called_off.id)
    (row,) = ledger.enqueue([request("day", "f5", "d")]).created
    ledger.pipelines.hand_on(row)
    ledger.pipelines.hand_on(row)
    assert chains_of(ledger, row) == ("a", "b", "c", "d")
