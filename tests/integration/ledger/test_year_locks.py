"""A locked year and the work of that year: never both, whoever comes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.ledger.client import LeaseLost

SUM = "reports.sum"


def lease(ledger, *keys: str, run: str = "run", kind: str = SUM):
    return ledger.lease(kind, keys, run, heartbeat=False)


def lock(ledger, year: int = 2025):
    return ledger.year_locks.lock(year, "ada", "published")


def rows(ledger, key: str = "") -> list[tuple[str, str, str]]:
    return [(row.key, row.status, row.reason_code) for row in ledger.find(SUM, key_prefix=key)]


def test_a_year_is_not_locked_while_its_work_is_held(ledger):
    with lease(ledger, "plane|2025", "train|2025") as held:
        with pytest.raises(
            InvalidInput, match=r"2025 is being worked at: plane\|2025 .* and 1 more"
        ) as refusal:
            lock(ledger)
        first = held.work["plane|2025"].id
        assert refusal.value.reason_code == "year_busy"
        assert f"perennial work cancel {first}" in refusal.value.remedy
        assert ledger.year_locks.held() == {}
    assert ledger.year_locks.held() == {}
    lock(ledger)
    assert 2025 in ledger.year_locks.held()


def test_work_of_other_years_and_of_no_year_holds_no_lock_up(ledger):
    with lease(ledger, "plane|2024"), lease(ledger, "plane|2025", kind="market.fill"):
        assert lock(ledger).year == 2025


def test_what_waits_holds_no_lock_up(ledger):
    ledger.enqueue([WorkRequest(SUM, "plane|2025", "f")])
    assert lock(ledger).year == 2025


@pytest.mark.parametrize("wished", [True, False])
def test_work_of_a_locked_year_is_not_held_and_ends(ledger, wished):
    """Waiting on it would be sent again and again."""
    if wished:
        ledger.enqueue([WorkRequest(SUM, "plane|2025", "f", reason_code="new")])
    made = lock(ledger)
    with lease(ledger, "plane|2025", "plane|2024") as held:
        assert held.keys == ("plane|2024",)
        assert held.locked == {"plane|2025": made}
    assert rows(ledger, "plane|2025") == [("plane|2025", "skipped", "year_locked")]
    assert rows(ledger, "plane|2024") == [("plane|2024", "completed", "")]
    [row] = ledger.find(SUM, key_prefix="plane|2025")
    assert (row.attempts, row.started_at) == (0, None)


def test_what_a_lock_ended_is_wished_for_again(ledger):
    ledger.enqueue([WorkRequest(SUM, "plane|2025", "f")])
    lock(ledger)
    with lease(ledger, "plane|2025"):
        pass
    ledger.year_locks.unlock(2025, "ada", "a mistake")
    assert ledger.enqueue([WorkRequest(SUM, "plane|2025", "f")]).counts["created"] == 1
    with lease(ledger, "plane|2025") as held:
        assert held.keys == ("plane|2025",)


def test_work_that_was_called_off_makes_way_for_the_lock_and_commits_nothing_more(ledger):
    held = lease(ledger, "plane|2025")

    def work() -> None:
        with held:
            ledger.cancel(held.work["plane|2025"].id)
            lock(ledger)
            held.check()

    with pytest.raises(LeaseLost):
        work()
    assert rows(ledger) == [("plane|2025", "cancelled", "cancelled")]


def test_a_worker_does_not_take_what_a_lock_may_forbid(ledger):
    ledger.enqueue([WorkRequest(SUM, "plane|2025", "f")])
    with pytest.raises(ValueError, match="it is held"):
        ledger.claim(SUM, holder="worker:1", limit=1)


@pytest.mark.parametrize("wished", [True, False])
def test_of_a_lock_and_a_hold_at_the_same_moment_one_gives_way(ledger, open_ledger, wished):
    years = range(2000, 2040)
    if wished:
        ledger.enqueue([WorkRequest(SUM, f"plane|{year}", "f") for year in years])
    locker, worker = open_ledger(), open_ledger()
    start = Barrier(2, timeout=30)

    def locks(year: int) -> bool:
        start.wait()
        try:
            lock(locker, year)
        except InvalidInput:
            return False
        return True

    def holds(year: int) -> tuple[bool, bool]:
        start.wait()
        with lease(worker, f"plane|{year}") as held:
            mine = bool(held.keys)
            start.wait()  # until the locker has its answer
        return mine, bool(held.locked)

    def one_after_another(year: int) -> bool:
        locked = locks(year)
        start.wait()
        return locked

    with ThreadPoolExecutor(2) as pool:
        for year in years:
            locked, held = pool.submit(one_after_another, year), pool.submit(holds, year)
            assert held.result() == (not locked.result(), locked.result()), year
