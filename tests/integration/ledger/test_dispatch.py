"""Dispatch: which rows go next, how they travel, and how a run that never claims is replaced."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import event, select

from domain.shared.work import WorkRequest
from resources.ledger.schema import work

FILL = "market.fill"


def enqueue(ledger, *keys: str, **more: object) -> None:
    ledger.enqueue([WorkRequest(FILL, key, "f", **more) for key in keys])


def day_of(row) -> str:
    return row.key.split(":")[1]


def keys(dispatches) -> list[tuple[str, ...]]:
    return [sent.keys for sent in dispatches]


def test_the_oldest_goes_first_and_the_limit_counts(ledger):
    enqueue(ledger, "b", "a", "c")
    assert keys(ledger.dispatch(FILL, limit=2)) == [("b",), ("a",)]
    assert keys(ledger.dispatch(FILL, limit=2)) == [("c",)]


def test_priority_goes_before_age(ledger):
    enqueue(ledger, "old")
    enqueue(ledger, "urgent", priority=5)
    assert keys(ledger.dispatch(FILL, limit=1)) == [("urgent",)]


def test_rows_of_a_group_travel_together_and_the_limit_counts_groups(ledger):
    enqueue(ledger, "daily:17", "basic:17", "daily:18", "basic:18", "daily:16")
    sent = ledger.dispatch(FILL, limit=2, group=day_of, order="newest")
    assert [(one.group, one.keys) for one in sent] == [
        ("18", ("daily:18", "basic:18")),
        ("17", ("daily:17", "basic:17")),
    ]
    assert all(row.dispatch_id == s.id for s in sent for row in s.rows)
    assert len({s.id for s in sent}) == 2


def test_nothing_goes_before_its_time(ledger, clock):
    enqueue(ledger, "a", not_before=clock() + timedelta(minutes=10))
    assert ledger.dispatch(FILL, limit=9) == []
    clock.advance(minutes=10)
    assert keys(ledger.dispatch(FILL, limit=9)) == [("a",)]


def test_a_run_that_never_claims_is_replaced_ever_more_slowly(ledger, clock):
    enqueue(ledger, "a")
    waits, ids = [], []
    for _ in range(5):
        (sent,) = ledger.dispatch(FILL, limit=1)
        ids.append(sent.id)
        waits.append((sent.rows[0].not_before - clock()).total_seconds())
        clock.now = sent.rows[0].not_before - timedelta(seconds=1)
        assert ledger.dispatch(FILL, limit=1) == []
        clock.advance(seconds=1)
    assert waits == [120, 240, 480, 900, 900]
    assert len(set(ids)) == 5, "a run key is spent with its run"


def test_rows_whose_run_is_still_queued_are_left_out(ledger, clock):
    enqueue(ledger, "a", "b")
    first, second = ledger.dispatch(FILL, limit=2)
    clock.advance(hours=1)
    assert keys(ledger.dispatch(FILL, limit=9, busy={first.id})) == [second.keys]


def test_rows_that_are_not_chosen_are_left_out_and_count_for_no_limit(ledger):
    enqueue(ledger, "daily:17", "basic:17", "daily:18", "basic:18", "daily:16")
    sent = ledger.dispatch(FILL, limit=2, group=day_of, order="newest", only=lambda row: day_of(row) < "18")
    assert keys(sent) == [("daily:17", "basic:17"), ("daily:16",)]


def test_a_claim_makes_the_next_dispatch_patient_again(ledger, clock):
    enqueue(ledger, "a")
    for _ in range(3):
        ledger.dispatch(FILL, limit=1)
        clock.advance(hours=1)
    with ledger.lease(FILL, ["a"], "run", heartbeat=False) as lease:
        lease.defer("a", "later")
    clock.advance(hours=1)
    (sent,) = ledger.dispatch(FILL, limit=1)
    assert sent.rows[0].not_before == clock() + timedelta(seconds=120)


def test_tenants_take_turns(ledger):
    enqueue(ledger, *[f"big{n}" for n in range(5)], tenant="big")
    enqueue(ledger, "small0", "small1", tenant="small")
    assert keys(ledger.dispatch(FILL, limit=4)) == [("big0",), ("small0",), ("big1",), ("small1",)]


def test_a_tenant_with_work_under_way_lets_others_go_first(ledger):
    enqueue(ledger, "big0", "big1", tenant="a-big")
    ledger.dispatch(FILL, limit=1)
    enqueue(ledger, "small0", tenant="small")
    assert keys(ledger.dispatch(FILL, limit=1)) == [("small0",)]


def test_workers_get_each_row_once_and_answer_by_fence(ledger, machine):
    enqueue(ledger, "a", "b", "c")
    first = ledger.claim(FILL, holder="worker:1", limit=2)
    second = ledger.claim(FILL, holder="worker:2", limit=2)
    assert [row.key for row in first] == ["a", "b"]
    assert [row.key for row in second] == ["c"]
    assert first[0].lease_until == machine() + timedelta(seconds=60)
    assert ledger.complete(first[0].id, first[0].fence).status == "completed"


def test_one_worker_counts_an_attempt_for_each_claim(ledger, clock):
    enqueue(ledger, "a")
    for attempt in (1, 2, 3):
        (row,) = ledger.claim(FILL, holder="worker:1", limit=1)
        assert row.attempts == attempt
        ledger.defer(row.id, row.fence, "busy")
        clock.advance(hours=1)


def tenants(rows) -> dict[str, int]:
    return dict(Counter(row.tenant for row in rows))


@pytest.mark.parametrize("idle", ["a", "c", "e"])
def test_what_a_tenant_has_no_due_rows_for_goes_to_the_others_alike(ledger, clock, idle):
    enqueue(ledger, idle, not_before=clock() + timedelta(hours=1), tenant=idle)
    for tenant in ("b", "d"):
        enqueue(ledger, *[f"{tenant}{n}" for n in range(9)], tenant=tenant)
    assert tenants(ledger.claim(FILL, holder="worker:1", limit=6)) == {"b": 3, "d": 3}


def test_a_claim_takes_all_there_is_up_to_its_limit(ledger):
    sizes = {"a": 1, "b": 7, "c": 2, "d": 5}
    for tenant, size in sizes.items():
        enqueue(ledger, *[f"{tenant}{n}" for n in range(size)], tenant=tenant)
    rows = ledger.claim(FILL, holder="worker:1", limit=11)
    assert tenants(rows) == {"a": 1, "b": 4, "c": 2, "d": 4}
    assert len({row.id for row in rows}) == 11
    assert tenants(ledger.claim(FILL, holder="worker:2", limit=11)) == {"b": 3, "d": 1}
    assert ledger.claim(FILL, holder="worker:3", limit=11) == []


def test_fewer_than_the_tenants_are_taken_from_who_has_something(ledger, clock):
    for tenant in ("a", "b", "c"):
        enqueue(ledger, tenant, not_before=clock() + timedelta(hours=1), tenant=tenant)
    enqueue(ledger, "d0", "d1", tenant="d")
    assert [row.key for row in ledger.claim(FILL, holder="worker:1", limit=2)] == ["d0", "d1"]


def test_a_tenant_asked_twice_gives_its_most_urgent_rows_in_order(ledger, clock):
    enqueue(ledger, "idle", not_before=clock() + timedelta(hours=1), tenant="z")
    enqueue(ledger, "low", tenant="a")
    enqueue(ledger, "high", "higher", tenant="a", priority=5)
    enqueue(ledger, "other", tenant="a")
    assert [row.key for row in ledger.claim(FILL, holder="worker:1", limit=3)] == ["high", "higher", "low"]


def test_where_every_tenant_has_enough_each_is_asked_once(ledger):
    for tenant in ("a", "b", "c"):
        enqueue(ledger, *[f"{tenant}{n}" for n in range(5)], tenant=tenant)
    said: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    assert len(ledger.claim(FILL, holder="worker:1", limit=9)) == 9
    assert len([text for text in said if "work.tenant = " in text and "ORDER BY" in text]) == 3


@pytest.mark.parametrize("ledger_url", ["postgres"], indirect=True)  # on SQLite a writer is alone
def test_rows_another_is_just_taking_are_made_up_for_by_the_next_tenant(ledger, open_ledger):
    for tenant in ("a", "b"):
        enqueue(ledger, *[f"{tenant}{n}" for n in range(4)], tenant=tenant)
    with open_ledger().engine.begin() as other:
        other.execute(select(work.c.id).where(work.c.tenant == "a", work.c.key != "a3").with_for_update())
        assert tenants(ledger.claim(FILL, holder="worker:1", limit=4)) == {"a": 1, "b": 3}
