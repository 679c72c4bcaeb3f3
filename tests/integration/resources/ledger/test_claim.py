"""Workers that take whatever is due: claim, renew, polling, `lease_due`, and the backlog that calls them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.model import Backlog, LeaseLost
from resources.ledger.schema import work
from tests.integration.conftest import FILL as FILL_KIND

FILL, FINITE = "market.fill", "records.hook"


def enqueue(ledger, *keys: str, kind: str = FILL, **more: object) -> None:
    ledger.enqueue([WorkRequest(kind, key, "f", **more) for key in keys])


def tenants(rows) -> dict[str, int]:
    return dict(Counter(row.tenant for row in rows))


def claimed(ledger, **more: object):
    (row,) = ledger.claim(more.pop("kind", FILL), holder="worker:1", limit=1, **more)
    return row


def test_claim__two_workers__get_each_row_once(ledger, machine):
    enqueue(ledger, "a", "b", "c")
    first = ledger.claim(FILL, holder="worker:1", limit=2)
    second = ledger.claim(FILL, holder="worker:2", limit=2)
    assert [row.key for row in first] == ["a", "b"]
    assert [row.key for row in second] == ["c"]
    assert first[0].lease_until == machine() + timedelta(seconds=60)
    ledger.complete(first[0])
    assert ledger.get(first[0].id).status == "completed"


def test_claim__same_worker_again__counts_each_attempt(ledger, clock):
    enqueue(ledger, "a")
    for attempt in (1, 2, 3):
        row = claimed(ledger)
        assert row.attempts == attempt
        ledger.defer(row, "busy")
        clock.advance(hours=1)


def test_claim__tenant_or_keys__claims_only_those(ledger):
    enqueue(ledger, "a", "b", tenant="t1")
    enqueue(ledger, "c", tenant="t2")
    assert [row.key for row in ledger.claim(FILL, holder="worker:1", limit=9, keys=["b"])] == ["b"]
    assert [row.key for row in ledger.claim(FILL, holder="worker:1", limit=9, tenant="t2")] == ["c"]
    assert [row.key for row in ledger.claim(FILL, holder="worker:1", limit=9)] == ["a"]


def test_claim__without_attempt__counts_nothing_and_leaves_no_event_while_polling(ledger, clock):
    enqueue(ledger, "job", kind=FINITE)
    row = claimed(ledger, kind=FINITE)
    ledger.defer(row, not_before=clock() + timedelta(seconds=2), reason_code="polling")
    for _ in range(20):
        clock.advance(seconds=2)
        row = claimed(ledger, kind=FINITE, attempt=False)
        assert (row.status, row.attempts) == ("running", 1)
        ledger.defer(row, not_before=clock() + timedelta(seconds=2), reason_code="polling")
    clock.advance(seconds=2)
    row = claimed(ledger, kind=FINITE, attempt=False)
    ledger.complete(row)
    history = [(e.event, e.status, e.attempt) for e in ledger.events(row.id)]
    assert history == [
        ("created", "queued", 0),
        ("claimed", "running", 1),
        ("deferred", "deferred", 1),
        ("completed", "completed", 1),
    ]


def test_claim__poll_meets_an_error__leaves_an_event(ledger, clock):
    enqueue(ledger, "job", kind=FINITE)
    row = claimed(ledger, kind=FINITE, attempt=False)
    ledger.defer(row, TransientResourceError("cluster busy"))
    assert [e.event for e in ledger.events(row.id)] == ["created", "deferred"]
    assert ledger.get(row.id).error == "cluster busy"


def test_sweep__poller_died_on_the_last_attempt__queues_the_row_again(ledger, machine, clock):
    enqueue(ledger, "job", kind=FINITE)
    for _ in range(3):
        row = claimed(ledger, kind=FINITE)
        ledger.defer(row, not_before=clock())
    row = claimed(ledger, kind=FINITE, attempt=False)
    machine.advance(seconds=61)
    (swept,) = ledger.sweep(finished_runs=())
    assert (swept.status, swept.attempts, swept.crash_count) == ("queued", 3, 1)


def test_claim__unknown_kind__is_refused(ledger):
    with pytest.raises(InvalidInput) as refusal:
        ledger.claim("nobody.knows", holder="worker:1", limit=1)
    assert refusal.value.reason_code == "unknown_kind"


def test_renew__leased_row__prolongs_and_a_stale_fence_changes_nothing(ledger, machine):
    enqueue(ledger, "a")
    row = claimed(ledger)
    machine.advance(seconds=50)
    assert ledger.renew(row)
    assert ledger.get(row.id).lease_until == machine() + timedelta(seconds=60)
    assert not ledger.renew(replace(row, fence=row.fence - 1))
    ledger.release(row)
    assert not ledger.renew(row)


@pytest.mark.parametrize("idle", ["a", "c", "e"])
def test_claim__a_tenant_has_nothing_due__the_others_share_alike(ledger, clock, idle):
    enqueue(ledger, idle, not_before=clock() + timedelta(hours=1), tenant=idle)
    for tenant in ("b", "d"):
        enqueue(ledger, *[f"{tenant}{n}" for n in range(9)], tenant=tenant)
    assert tenants(ledger.claim(FILL, holder="worker:1", limit=6)) == {"b": 3, "d": 3}


def test_claim__unequal_tenants__takes_all_there_is_up_to_the_limit(ledger):
    sizes = {"a": 1, "b": 7, "c": 2, "d": 5}
    for tenant, size in sizes.items():
        enqueue(ledger, *[f"{tenant}{n}" for n in range(size)], tenant=tenant)
    rows = ledger.claim(FILL, holder="worker:1", limit=11)
    assert tenants(rows) == {"a": 1, "b": 4, "c": 2, "d": 4}
    assert tenants(ledger.claim(FILL, holder="worker:2", limit=11)) == {"b": 3, "d": 1}
    assert ledger.claim(FILL, holder="worker:3", limit=11) == []


def test_claim__priorities_of_a_tenant__go_in_order(ledger):
    enqueue(ledger, "low", tenant="a")
    enqueue(ledger, "high", "higher", tenant="a", priority=5)
    assert [row.key for row in ledger.claim(FILL, holder="worker:1", limit=3)] == ["high", "higher", "low"]


@pytest.mark.parametrize("ledger_url", ["postgres"], indirect=True)  # on SQLite a writer is alone
def test_claim__rows_locked_by_another__are_made_up_for_by_the_next_tenant(ledger, open_ledger):
    for tenant in ("a", "b"):
        enqueue(ledger, *[f"{tenant}{n}" for n in range(4)], tenant=tenant)
    with open_ledger().engine.begin() as other:
        other.execute(select(work.c.id).where(work.c.tenant == "a", work.c.key != "a3").with_for_update())
        assert tenants(ledger.claim(FILL, holder="worker:1", limit=4)) == {"a": 1, "b": 3}


# Pulled kinds


@pytest.fixture
def pulled(ledger):
    return ledger.with_kinds([replace(FILL_KIND, pulled=True)])


def test_lease_due__more__leases_further_keys_and_completes_all(pulled):
    enqueue(pulled, "a", "b", "c")
    with pulled.lease_due(FILL, "run 1", 2, heartbeat=False) as lease:
        assert lease.keys == ("a", "b")
        lease.complete("a")
        assert lease.more(5) == ("c",)
        assert lease.more(5) == ()
        lease.fail("b", "no")
    statuses = {row.key: (row.status, row.attempts, row.run_id) for row in pulled.find()}
    assert statuses == {
        "a": ("completed", 1, "run 1"),
        "b": ("failed", 1, "run 1"),
        "c": ("completed", 1, "run 1"),
    }


def test_lease_due__deferred_key_is_due_again__is_leased_by_more(pulled, clock):
    enqueue(pulled, "a")
    with pulled.lease_due(FILL, "run 1", 1, heartbeat=False) as lease:
        lease.defer("a", "busy", not_before=clock() + timedelta(seconds=5))
        assert lease.more(1) == ()
        clock.advance(seconds=5)
        assert lease.more(1) == ("a",)
        lease.complete("a")
    assert [(row.status, row.attempts) for row in pulled.find()] == [("completed", 2)]


def test_lease_due__swept_meanwhile__raises_lease_lost(pulled):
    enqueue(pulled, "a")
    lease = pulled.lease_due(FILL, "run 1", 1, heartbeat=False)
    lease.__enter__()
    assert len(pulled.sweep(finished_runs={"run 1"})) == 1
    with pytest.raises(LeaseLost):
        lease.check()


def test_backlog__every_state__is_counted_by_tenant_without_marking_rows(ledger, clock):
    born = clock()
    enqueue(ledger, "a1", "a2", tenant="a")
    clock.advance(minutes=1)
    enqueue(ledger, "a3", tenant="a", not_before=clock() + timedelta(hours=1))
    enqueue(ledger, "b1", tenant="b")
    before = ledger.find()
    assert ledger.backlog(FILL) == {"a": Backlog(2, 3, 0, born), "b": Backlog(1, 1, 0, clock())}
    assert ledger.find() == before
    ledger.claim(FILL, holder="worker:1", limit=1, tenant="b")
    assert ledger.backlog(FILL)["b"] == Backlog(0, 0, 1, None)
    assert ledger.backlog(FINITE) == {}
