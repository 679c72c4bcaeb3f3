"""Pipelines: which rows belong to which, however the rows come, go, and supersede each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event

from domain.shared.work import WorkRequest
from resources.ledger.pipelines import new_pipeline_id

FILL, HOOK = "market.fill", "records.hook"


def request(key: str = "day", fingerprint: str = "f1", *pipelines: str, kind: str = FILL) -> WorkRequest:
    return WorkRequest(kind, key, fingerprint, pipelines=pipelines)


def pipelines_of(ledger, row) -> tuple[str, ...]:
    return ledger.pipelines.of([row.id]).get(row.id, ())


def keys(ledger, pipeline: str) -> list[tuple[str, str]]:
    return [(row.key, row.status) for row in ledger.pipelines.members([pipeline])[pipeline]]


def test_enqueue__new_row__joins_the_pipelines_of_its_request(ledger):
    (row,) = ledger.enqueue([request("day", "f1", "b", "a")]).created
    (alone,) = ledger.enqueue([request("other")]).created
    assert (pipelines_of(ledger, row), pipelines_of(ledger, alone)) == (("a", "b"), ())
    assert keys(ledger, "a") == keys(ledger, "b") == [("day", "queued")]
    assert ledger.pipelines.members(["nobody"]) == {"nobody": []}


def test_members__two_pipelines__are_whole_rows_oldest_first(ledger, clock):
    ledger.enqueue([request("b", "f", "x"), request("c", "f", "y")])
    clock.advance(minutes=1)
    ledger.enqueue([request("a", "f", "x", kind=HOOK)])
    found = ledger.pipelines.members(["x", "y"])
    assert {name: [row.key for row in rows] for name, rows in found.items()} == {"x": ["b", "a"], "y": ["c"]}
    for row in (*found["x"], *found["y"]):
        assert row == ledger.get(row.id)


@pytest.mark.parametrize("fingerprint", ["f1", "f2"])
def test_enqueue__waiting_row__joins_further_pipelines(ledger, fingerprint):
    (row,) = ledger.enqueue([request("day", "f1", "a")]).created
    for _ in range(2):
        ledger.enqueue([request("day", fingerprint, "b")])
    assert pipelines_of(ledger, row) == ("a", "b")


def test_enqueue__running_row__joins_only_for_the_same_request(ledger):
    with ledger.lease(FILL, ["day"], "run", heartbeat=False, fingerprints={"day": "f1"}) as lease:
        ledger.enqueue([request("day", "f1", "a")])
        (behind,) = ledger.enqueue([request("day", "f2", "b")]).created
        assert (pipelines_of(ledger, lease.work["day"]), pipelines_of(ledger, behind)) == (("a",), ("b",))


def test_enqueue__refused_request__joins_nothing(ledger):
    ledger.enqueue([request("day", "f1", "a"), request("good", "f1", "a")])
    with ledger.lease(FILL, ["day", "good"], "run", heartbeat=False) as lease:
        lease.fail("day", "hopeless")
    assert ledger.enqueue([request("day", "f1", "b")]).counts["refused"] == 1
    assert keys(ledger, "b") == []
    assert keys(ledger, "a") == [("day", "failed"), ("good", "completed")]


def test_defer__newer_request_waits__leaves_its_pipelines_to_it(ledger):
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
        (newer,) = ledger.enqueue([request("day", "f2", "b")]).created
        lease.defer("day", "source down")
    assert keys(ledger, "a") == [("day", "superseded"), ("day", "deferred")]
    assert pipelines_of(ledger, newer) == ("a", "b")


def test_retry__failed_row__its_new_generation_joins_its_pipelines(ledger):
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
        lease.fail("day", "hopeless")
    assert pipelines_of(ledger, ledger.retry(lease.work["day"].id)) == ("a",)


def test_purge__member__leaves_its_pipeline(ledger, clock):
    ledger.enqueue([request("day", "f1", "a")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False):
        pass
    clock.advance(days=100)
    assert ledger.purge(clock()) == 1
    assert keys(ledger, "a") == []


def test_inherit_unfinished__earlier_rows_failed__joins_their_pipelines(ledger):
    def fail(pipeline: str, fingerprint: str) -> None:
        ledger.enqueue([request("day", fingerprint, pipeline), request("other", fingerprint, "of another")])
        with ledger.lease(FILL, ["day", "other"], "run", heartbeat=False) as held:
            held.fail("day", "implausible")

    fail("before", "f0")
    ledger.enqueue([request("day", "f1", "completed before")])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False):
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
    statements: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    found = ledger.pipelines.of([row.id for row in rows] * 2)
    assert {len(names) for names in found.values()} == {2}
    assert len(ledger.pipelines.members(["a", *(f"c{n}" for n in range(1_100))])["a"]) == 1_100
    assert len(statements) < 20


def test_add__many_at_once__joins_each_pipeline_once(ledger, open_ledger):
    (row,) = ledger.enqueue([request("day", "f1")]).created
    ledgers = [open_ledger() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: one.pipelines.add(row.id, [f"c{n}" for n in range(50)]), ledgers))
    assert len(pipelines_of(ledger, row)) == 50


def test_new_pipeline_id__later_ones__sort_behind_and_never_repeat(monkeypatch):
    import time

    assert len({new_pipeline_id() for _ in range(5_000)}) == 5_000
    moments = iter([1_000_000_000, 2_000_000_000_000, 3_000_000_000_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    ids = [new_pipeline_id() for _ in range(3)]
    assert ids == sorted(ids)
    assert {len(one) for one in ids} == {26}
    assert set("".join(ids)) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
