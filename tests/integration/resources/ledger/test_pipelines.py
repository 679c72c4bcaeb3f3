"""Pipelines: which rows belong to which, however the rows come, go, and supersede each other."""

from __future__ import annotations

import time

import pytest

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
