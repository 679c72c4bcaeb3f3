"""A locked year and the work of that year: never both, in whatever order they come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from domain.carbon.jobs import ALL_KINDS, API_INGEST, FILE_INGEST, RECALCULATION
from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.model import LeaseLost
from services.carbon.store import CarbonStore, YearLocked, gated

PLANE, TRAIN = "emissions:plane|2025", "emissions:train|2025"


@pytest.fixture
def ledger(ledger: Ledger) -> Ledger:
    return ledger.with_kinds(gated(ALL_KINDS))


def lease(ledger: Ledger, *keys: str, kind: str = RECALCULATION):
    return ledger.lease(kind, keys, "run", heartbeat=False)


def lock(store: CarbonStore, year: int = 2025):
    return store.year_locks.lock(year, "ada", "published")


def rows(ledger: Ledger, key: str = "") -> list[tuple[str, str, str]]:
    return [(row.key, row.status, row.reason_code) for row in ledger.find(RECALCULATION, key_prefix=key)]


def test_lock__then_unlock__year_is_open_and_may_be_locked_again(store, clock):
    made = lock(store)
    assert (made.year, made.locked_by, made.reason, made.locked_at) == (2025, "ada", "published", clock())
    assert store.year_locks.held() == {2025: made}
    with pytest.raises(InvalidInput) as refusal:
        lock(store)
    assert refusal.value.reason_code == "already_locked"
    store.year_locks.unlock(2025, "bob", "a late invoice")
    assert store.year_locks.held() == {}
    with pytest.raises(InvalidInput) as refusal:
        store.year_locks.unlock(2025, "bob", "a late invoice")
    assert refusal.value.reason_code == "not_locked"
    again = lock(store)
    assert store.year_locks.held() == {2025: again}


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_lock_and_unlock__no_reason__are_refused(store, reason):
    with pytest.raises(InvalidInput) as refusal:
        store.year_locks.lock(2025, "ada", reason)
    assert refusal.value.reason_code == "no_reason"
    lock(store)
    with pytest.raises(InvalidInput):
        store.year_locks.unlock(2025, "ada", reason)
    assert 2025 in store.year_locks.held()


def test_lock__many_at_once__one_wins(store, open_store):
    stores = [open_store() for _ in range(6)]

    def lock_as(number: int) -> str | None:
        try:
            return stores[number].year_locks.lock(2025, f"person {number}", "published").locked_by
        except InvalidInput:
            return None

    with ThreadPoolExecutor(6) as pool:
        winners = [name for name in pool.map(lock_as, range(6)) if name]
    assert winners == [store.year_locks.held()[2025].locked_by]


def test_lock__work_of_the_year_is_running__is_refused_until_it_ended(ledger, store):
    with lease(ledger, PLANE, TRAIN) as held:
        with pytest.raises(InvalidInput, match="and 1 more") as refusal:
            lock(store)
        assert refusal.value.reason_code == "year_busy"
        assert f"perennial work cancel {held.work[PLANE].id}" in refusal.value.remedy
        assert store.year_locks.held() == {}
    assert lock(store).year == 2025


def test_lock__work_of_other_years_or_kinds_or_waiting__succeeds(ledger, store):
    ledger.enqueue([WorkRequest(RECALCULATION, PLANE, "f")])
    with lease(ledger, "emissions:plane|2024"), lease(ledger, "inbox_files:a|2025", kind=FILE_INGEST):
        assert lock(store).year == 2025


@pytest.mark.parametrize("requested", [True, False])
def test_lease__locked_year__skips_its_keys_and_does_the_rest(ledger, store, requested):
    if requested:
        ledger.enqueue([WorkRequest(RECALCULATION, PLANE, "f", reason_code="new")])
    lock(store)
    with lease(ledger, PLANE, "emissions:plane|2024") as held:
        assert held.keys == ("emissions:plane|2024",)
        assert {key: type(why) for key, why in held.refused.items()} == {PLANE: YearLocked}
    assert rows(ledger, PLANE) == [(PLANE, "skipped", "year_locked")]
    [row] = ledger.find(RECALCULATION, key_prefix=PLANE)
    assert (row.attempts, row.started_at) == (0, None)


def test_claim__locked_year__skips_its_rows_and_claims_the_rest(ledger, store):
    keys = ["pulled:plane|2025", "pulled:plane|2024"]
    ledger.enqueue([WorkRequest(API_INGEST, key, "f") for key in keys])
    lock(store)
    assert [row.key for row in ledger.claim(API_INGEST, holder="worker:1", limit=2)] == keys[1:]
    assert ledger.find(API_INGEST, status="skipped")[0].reason_code == "year_locked"


def test_enqueue__year_was_unlocked__creates_the_work_again(ledger, store):
    ledger.enqueue([WorkRequest(RECALCULATION, PLANE, "f")])
    lock(store)
    with lease(ledger, PLANE):
        pass
    store.year_locks.unlock(2025, "ada", "a mistake")
    assert ledger.enqueue([WorkRequest(RECALCULATION, PLANE, "f")]).counts["created"] == 1
    with lease(ledger, PLANE) as held:
        assert held.keys == (PLANE,)


def test_check__work_was_cancelled_and_its_year_locked__raises_lease_lost(ledger, store):
    held = lease(ledger, PLANE)

    def work() -> None:
        with held:
            ledger.cancel(held.work[PLANE].id)
            lock(store)
            held.check()

    with pytest.raises(LeaseLost):
        work()
    assert rows(ledger) == [(PLANE, "cancelled", "cancelled")]


@pytest.mark.parametrize("requested", [True, False])
def test_lock_and_lease__at_the_same_moment__one_gives_way(ledger, open_ledger, open_store, requested):
    years = range(2000, 2040)
    if requested:
        ledger.enqueue([WorkRequest(RECALCULATION, f"emissions:plane|{year}", "f") for year in years])
    locker, worker = open_store(), open_ledger().with_kinds(gated(ALL_KINDS))
    start = Barrier(2, timeout=30)

    def locks(year: int) -> bool:
        start.wait()
        try:
            lock(locker, year)
        except InvalidInput:
            return False
        return True

    def leases(year: int) -> tuple[bool, bool]:
        start.wait()
        with lease(worker, f"emissions:plane|{year}") as held:
            mine = bool(held.keys)
            start.wait()  # until the locker has its answer
        return mine, bool(held.refused)

    def lock_then_meet(year: int) -> bool:
        locked = locks(year)
        start.wait()
        return locked

    with ThreadPoolExecutor(2) as pool:
        for year in years:
            locked, held = pool.submit(lock_then_meet, year), pool.submit(leases, year)
            assert held.result() == (not locked.result(), locked.result()), year
