"""The one loop of commands: reconcile passes and their runs in this process, until nothing is left to do.

Others may work at the same time. The work of dead workers is taken back first; the caller may wait for that
of living ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from domain.shared.error import PerennialError
from domain.shared.work import QUEUED, RUNNING, WAITING
from services.reconcile import Reconciler, Reconciliation, RunStart, Unfinished, dispatch, observe_and_enqueue

if TYPE_CHECKING:
    from domain.shared.verdict import Plan
    from domain.shared.work import Work
    from resources.ledger.client import Ledger

ROUNDS = 10_000
"""More passes than any loop needs: each starts runs that were not started before."""
POLL = 0.25
"""Seconds between two reads of the ledger while others work."""
POLLS = 20
"""After so many reads there is another pass, whatever they showed: a lease may have expired."""
PATIENCE = 900.0
"""Seconds without any change after which the loop ends: a queue may have no daemon any more."""
BEGINS_WITHIN = timedelta(seconds=10)
"""A run of a living process begins that soon after its dispatch."""


class Runs(Protocol):
    """Runs in this process, and what is known of others."""

    def sweep(self, ledger: Ledger) -> None:
        """Take back the work of dead workers."""

    def unfinished(self) -> Unfinished: ...

    def has_died(self, dispatch_id: str) -> bool:
        """Whether all runs of a dispatch have ended."""

    def start(self, start: RunStart) -> object:
        """Execute a run to its end."""


def run_until_idle(
    domain: Reconciler,
    runs: Runs,
    *,
    wait_for_others: bool = False,
    hurry: Callable[[Work], bool] | None = None,
) -> Reconciliation:
    """Reconcile and run until nothing is due; return what the last pass saw and planned.

    `hurry` chooses waiting work that does not wait for its next attempt, as a person asks now.
    """
    changed, own = time.monotonic(), set[str]()
    for _ in range(ROUNDS):
        runs.sweep(domain.ledger)
        dispatch_again(domain.ledger, domain.kinds, runs, own)
        unfinished = runs.unfinished()
        observed = observe_and_enqueue(domain, unfinished)
        if hurry is not None:
            _make_due(domain, unfinished, hurry)
            hurry = None
        if started := _run_all(domain, runs, observed.plan, unfinished):
            own.update(started)
            changed = time.monotonic()
            continue
        rows = _rows(domain)
        busy = wait_for_others and (observed.left or _others_work(domain, rows, unfinished))
        if not busy or time.monotonic() - changed > PATIENCE:
            return observed
        if _changes(domain, rows):
            changed = time.monotonic()
    raise PerennialError(f"{ROUNDS} passes and still more to do", reason_code="no_end")


def _run_all(domain: Reconciler, runs: Runs, plan: Plan, unfinished: Unfinished) -> list[str]:
    """Run what is due, one run after another; return their dispatches.

    Dispatched one at a time: another process can do the next, and a death leaves little behind.
    """
    started: list[str] = []
    while starts := dispatch(domain, plan, unfinished, 1):
        for start in starts:
            runs.start(start)
            started.append(start.dispatch_id)
    return started


def _rows(domain: Reconciler) -> list[Work]:
    return domain.ledger.current(domain.kinds)


def _make_due(domain: Reconciler, unfinished: Unfinished, hurry: Callable[[Work], bool]) -> None:
    now = domain.ledger.clock()
    for row in _rows(domain):
        waits = row.status in WAITING and row.not_before > now
        # A run is on its way for what was dispatched.
        if waits and row.dispatch_id not in unfinished.dispatches and hurry(row):
            domain.ledger.retry(row.id)


def dispatch_again(
    ledger: Ledger, kinds: tuple[str, ...], runs: Runs, own: Collection[str] = frozenset()
) -> None:
    """Make work due whose run ended without claiming it, sooner than the ledger does, as a person waits. A
    run of our `own` would end like the one before."""
    now, unfinished = ledger.clock(), runs.unfinished().dispatches
    for row in ledger.current(kinds):
        if row.status != QUEUED or not row.dispatches or row.dispatch_id is None:
            continue
        if row.dispatch_id in own or row.dispatch_id in unfinished:
            continue
        if row.not_before <= now or runs.has_died(row.dispatch_id):
            ledger.retry(row.id)


def _others_work(domain: Reconciler, rows: Iterable[Work], unfinished: Unfinished) -> bool:
    """Whether anything is running, or dispatched, that is not ours: we run nothing now."""
    just_now = domain.ledger.clock() - BEGINS_WITHIN
    return any(
        row.status == RUNNING
        or (
            row.status == QUEUED
            and row.dispatch_id is not None
            and (row.dispatch_id in unfinished.dispatches or row.updated_at > just_now)
        )
        for row in rows
    )


def _changes(domain: Reconciler, rows: Iterable[Work]) -> bool:
    """Wait for a change of these rows, for a few reads of the ledger; whether there was one."""
    before = _marks(rows)
    for _ in range(POLLS):
        time.sleep(POLL)
        if _marks(_rows(domain)) != before:
            return True
    return False


def _marks(rows: Iterable[Work]) -> list[tuple[int, str, int]]:
    """What a heartbeat leaves as it is."""
    return [(row.id, row.status, row.fence) for row in rows]
