"""Workers that take whatever is due: claim, renew, polling, `lease_due`, the backlog; and the sweep."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.work import Work, WorkRequest
from resources.ledger.model import Backlog, LeaseLost
from resources.ledger.schema import work
from tests.integration.conftest import FILL as FILL_KIND
from tests.integration.resources.ledger.steps import FILL, FINITE, claimed, die, enqueue, lease


def tenants(rows) -> dict[str, int]:
    return dict(Counter(row.tenant for row in rows))


def test_claim__two_workers__get_each_row_once_the_most_urgent_first(ledger, machine):
    enqueue(ledger, "a", "b")
    enqueue(ledger, "urgent", priority=5)
    first = ledger.claim(FILL, holder="worker:1", limit=2)
    assert [row.key for row in first] == ["urgent", "a"]
    assert [row.key for row in ledger.claim(FILL, holder="worker:2", limit=2)] == ["b"]
    assert first[0].lease_until == machine() + timedelta(seconds=60)


def test_claim__tenant_or_keys__claims_only_those(ledger):
    enqueue(ledger, "a", "b", tenant="t1")
    enqueue(ledger, "c", tenant="t2")
    assert claimed(ledger, keys=["b"]).key == "b"
    assert claimed(ledger, tenant="t2").key == "c"


def test_claim__without_attempt__counts_nothing_and_leaves_no_event_while_polling(ledger, clock):
    enqueue(ledger, "job", kind=FINITE)
    for attempt in (True, False, False, False):
        row = claimed(ledger, FINITE, attempt=attempt)
        assert (row.status, row.attempts) == ("running", 1)
        ledger.defer(row, not_before=clock() + timedelta(seconds=2), reason_code="polling")
        clock.advance(seconds=2)
    ledger.defer(claimed(ledger, FINITE, attempt=False), TransientResourceError("cluster busy"))
    clock.advance(hours=1)
    ledger.complete(claimed(ledger, FINITE, attempt=False))
    assert [(e.event, e.status, e.attempt) for e in ledger.events(row.id)] == [
        ("created", "queued", 0),
        ("claimed", "running", 1),
        ("deferred", "deferred", 1),
        ("deferred", "deferred", 1),
        ("completed", "completed", 1),
    ]


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


def test_answer__stale_fence__changes_nothing_and_raises(ledger):
    enqueue(ledger, "a")
    row = claimed(ledger)
    ledger.release(row)
    again = claimed(ledger)
    for answer in (ledger.complete, ledger.defer, ledger.release):
        with pytest.raises(LeaseLost, match=f"work {row.id} "):
            answer(row)
    assert ledger.get(row.id) == again


# Tenants


def test_claim__a_tenant_has_nothing_due__the_others_share_alike(ledger, clock):
    enqueue(ledger, "c", not_before=clock() + timedelta(hours=1), tenant="c")
    for tenant in ("b", "d"):
        enqueue(ledger, *[f"{tenant}{n}" for n in range(9)], tenant=tenant)
    assert tenants(ledger.claim(FILL, holder="worker:1", limit=6)) == {"b": 3, "d": 3}


def test_claim__unequal_tenants__takes_all_there_is_up_to_the_limit(ledger):
    for tenant, size in {"a": 1, "b": 7, "c": 2, "d": 5}.items():
        enqueue(ledger, *[f"{tenant}{n}" for n in range(size)], tenant=tenant)
    rows = [ledger.claim(FILL, holder=f"worker:{n}", limit=11) for n in range(3)]
    assert list(map(tenants, rows)) == [{"a": 1, "b": 4, "c": 2, "d": 4}, {"b": 3, "d": 1}, {}]


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


def test_lease_due__more__leases_further_keys_and_those_due_again(pulled, clock):
    enqueue(pulled, "a", "b", "c")
    with pulled.lease_due(FILL, "run 1", 2, heartbeat=False) as held:
        assert held.keys == ("a", "b")
        held.defer("a", "busy", not_before=clock() + timedelta(seconds=5))
        held.fail("b", "no")
        assert held.more(5) == ("c",)
        clock.advance(seconds=5)
        assert held.more(5) == ("a",)
    assert {row.key: (row.status, row.attempts, row.run_id) for row in pulled.find()} == {
        "a": ("completed", 2, "run 1"),
        "b": ("failed", 1, "run 1"),
        "c": ("completed", 1, "run 1"),
    }


def test_backlog__every_state__is_counted_by_tenant_without_marking_rows(ledger, clock):
    born = clock()
    enqueue(ledger, "a1", "a2", tenant="a")
    clock.advance(minutes=1)
    enqueue(ledger, "a3", tenant="a", not_before=clock() + timedelta(hours=1))
    enqueue(ledger, "b1", tenant="b")
    before = ledger.find()
    assert ledger.backlog(FILL) == {"a": Backlog(2, 3, 0, born), "b": Backlog(1, 1, 0, clock())}
    assert ledger.find() == before
    claimed(ledger, tenant="b")
    assert ledger.backlog(FILL)["b"] == Backlog(0, 0, 1, None)
    assert ledger.backlog(FINITE) == {}


# The sweep


def test_sweep__finished_run__queues_its_rows_with_their_attempts_once(ledger, clock):
    row = die(ledger, "run")
    (swept,) = ledger.sweep(finished_runs={"run", "other"})
    assert swept == ledger.get(row.id)
    assert (swept.status, swept.run_id, swept.reason_code) == ("queued", "run", "run_finished")
    due = clock() + timedelta(minutes=1)
    assert (swept.attempts, swept.deaths, swept.not_before, swept.lease_until) == (0, 1, due, None)
    assert ledger.sweep(finished_runs={"run"}) == []


def test_sweep__renewed_lease__is_never_stolen_and_an_expired_one_is(ledger, machine):
    swept: list[Work] = []

    def run() -> None:
        with lease(ledger, "a") as held:
            for _ in range(3):
                machine.advance(seconds=50)
                held.check()
                assert ledger.sweep(finished_runs=()) == []
            machine.advance(seconds=61)
            swept.extend(ledger.sweep(finished_runs=()))

    with pytest.raises(LeaseLost):
        run()
    assert [(row.reason_code, row.run_id) for row in swept] == [("lease_expired", "run")]
    assert ledger.get(swept[0].id) == swept[0], "the late holder wrote nothing"


MINUTES = (1, 5, 25, 60, 60, 60, 60, 60, 60)
"""How long work waits after each death of its holder, counted from its last sign of life."""


@pytest.mark.parametrize("kind", [FILL, FINITE])
def test_sweep__deaths_in_a_row__wait_ever_longer_and_the_tenth_abandons_the_row(
    ledger, clock, machine, kind
):
    waits = []
    for death in range(10):
        die(ledger, f"run {death}", kind=kind)
        machine.advance(seconds=40)
        (swept,) = ledger.sweep(finished_runs={f"run {death}"})
        waits.append(swept.not_before - clock())
    assert [wait + timedelta(seconds=40) for wait in waits[:-1]] == [timedelta(minutes=m) for m in MINUTES]
    assert (swept.status, swept.error_kind, swept.reason_code) == ("failed", "abandoned", "abandoned")
    assert (swept.deaths, swept.attempts) == (10, 0)
    assert ledger.events(swept.id)[-1].event == "abandoned"
    again = ledger.retry(swept.id)
    assert (again.status, again.deaths) == ("queued", 0), "a person starts it again"


def test_sweep__lease_expired__queues_its_first_death_at_once(ledger, clock, machine):
    die(ledger, "run")
    machine.advance(seconds=61)
    (swept,) = ledger.sweep(finished_runs=())
    assert (swept.reason_code, swept.not_before) == ("lease_expired", clock())


@pytest.mark.parametrize("kind", [FILL, FINITE])
def test_defer__after_deaths__has_all_attempts_of_its_own(ledger, kind):
    for death in range(9):
        die(ledger, f"run {death}", kind=kind)
        ledger.sweep(finished_runs={f"run {death}"})
    with pytest.raises(TransientResourceError), lease(ledger, "a", run="lives", kind=kind):
        raise TransientResourceError("HTTP 503")
    (row,) = ledger.find(kind)
    assert (row.status, row.attempts, row.deaths) == ("deferred", 1, 0)
    die(ledger, "run 10", kind=kind)
    (swept,) = ledger.sweep(finished_runs={"run 10"})
    assert (swept.status, swept.attempts, swept.deaths) == ("queued", 1, 1)


@pytest.mark.parametrize(
    ("error", "fixed"),
    [(TransientResourceError("slow down", retry_after=timedelta(minutes=1)), True), (OSError("oops"), False)],
)
def test_defer__wait__says_whether_the_source_named_its_moment(ledger, error, fixed):
    with pytest.raises(type(error)), lease(ledger, "a"):
        raise error
    (row,) = ledger.find(FILL)
    assert (row.status, row.not_before_fixed) == ("deferred", fixed)
    assert not ledger.retry(row.id).not_before_fixed


def test_sweep__newer_request_waits__supersedes_the_orphan_and_inherits_its_pipelines(ledger, machine):
    enqueue(ledger, "a", pipelines=("p",))
    old = claimed(ledger)
    (new,) = ledger.enqueue([WorkRequest(FILL, "a", "f2", pipelines=("q",))]).created
    machine.advance(minutes=5)
    (swept,) = ledger.sweep(finished_runs=())
    assert (swept.id, swept.status) == (old.id, "superseded")
    assert (ledger.get(new.id).attempts, ledger.get(new.id).deaths) == (0, 1)
    assert ledger.pipelines.of([old.id, new.id]) == {old.id: ("p",), new.id: ("p", "q")}
