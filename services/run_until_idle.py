"""The one loop of commands: reconcile passes and their runs in this process, until nothing is left to do.

A person who starts a command wants its work now: what only waits for a backoff, or for a run that nobody is
about to start, is made due once. What living runs of others have is waited for. A moment that the source
named is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from domain.shared.error import PerennialError
from domain.shared.work import RUNNING, WAITING
from services.reconcile import (
    Reconciler,
    Reconciliation,
    RunStart,
    Unfinished,
    dispatch,
    observe_and_enqueue,
    pull,
)

if TYPE_CHECKING:
    from domain.shared.verdict import Plan
    from domain.shared.work import Work
    from resources.ledger.client import Ledger
    from resources.ledger.model import Backlog

ROUNDS = 10_000
"""More passes than any loop needs: each starts runs that were not started before."""
POLL = 0.25
"""Seconds between two reads of the ledger while others work."""
POLLS = 20
"""After so many reads there is another pass, whatever they showed: a lease may have expired."""
PATIENCE = 900.0
"""Seconds without any change after which the loop ends: a queue may have no daemon any more."""
BEGINS_WITHIN = 10.0
"""Seconds within which a living process creates the run of its dispatch."""


class Runs(Protocol):
    """Runs in this process, and what is known of others."""

    def sweep(self, ledger: Ledger) -> None:
        """Take back the work of dead workers."""

    def unfinished(self) -> Unfinished: ...

    def has_ended(self, dispatch_id: str) -> bool:
        """Whether all runs of a dispatch have ended; False if there is none."""

    def alone(self) -> bool:
        """Whether surely no other process is about to start a run."""

    def start(self, start: RunStart) -> object:
        """Execute a run to its end."""

    def report_waiting(self, keys: Sequence[str]) -> None:
        """Say that other runs have these keys, and that the command waits for them."""


class WaitingWork:
    """Makes waiting work due that nothing but a clock keeps from being done."""

    def __init__(self, ledger: Ledger, kinds: Sequence[str], runs: Runs) -> None:
        self._ledger, self._kinds, self._runs = ledger, tuple(kinds), runs
        self._first_seen: dict[str, float] = {}
        self.own: set[str] = set()
        """Our dispatches: another run of one that ended unclaimed would end like it."""

    def rows(self) -> list[Work]:
        return self._ledger.current(self._kinds)

    def make_due(self, unfinished: Unfinished, *, hurry: bool) -> bool:
        """Make due what lost its run, and with `hurry` what waits for a backoff; whether there was any."""
        now = self._ledger.clock()
        due = [
            row
            for row in self.rows()
            if row.status in WAITING
            and row.run_id not in unfinished.runs
            and (
                self._is_lost(row, unfinished)
                if _is_sent(row)
                else hurry and row.not_before > now and not row.not_before_fixed
            )
        ]
        return bool(self._ledger.hurry(due))

    def of_others(self, unfinished: Unfinished) -> list[Work]:
        """What is running, or about to, while we run nothing."""
        return [
            row
            for row in self.rows()
            if row.status == RUNNING
            or (row.status in WAITING and row.run_id in unfinished.runs)
            or (_is_sent(row) and row.dispatch_id not in self.own and not self._is_lost(row, unfinished))
        ]

    def _is_lost(self, row: Work, unfinished: Unfinished) -> bool:
        """Whether the run of a dispatched row ended without claiming it, or will never be."""
        dispatch_id = row.dispatch_id or ""
        if dispatch_id in unfinished.dispatches or dispatch_id in self.own:
            return False
        if row.not_before <= self._ledger.clock() or self._runs.has_ended(dispatch_id) or self._runs.alone():
            return True
        first_seen = self._first_seen.setdefault(dispatch_id, time.monotonic())
        return time.monotonic() - first_seen > BEGINS_WITHIN


class PulledWork:
    """Runs of pulled kinds, one after another, as long as each gets something done."""

    def __init__(self, domain: Reconciler, runs: Runs) -> None:
        self._domain, self._runs = domain, runs
        self._before: dict[str, tuple[dict[str, Backlog], str]] = {}
        """By kind, what there was to do when our last run of it began."""

    def backlogs(self) -> dict[str, dict[str, Backlog]]:
        return {one.kind: self._domain.ledger.backlog(one.kind) for one in self._domain.pulls}

    def make_due(self) -> bool:
        """Make due what waits for a backoff; whether there was any."""
        ledger = self._domain.ledger
        later = [row for one in self._domain.pulls for row in ledger.not_due(one.kind)]
        return bool(ledger.hurry([row for row in later if not row.not_before_fixed]))

    def run_all(self, unfinished: Unfinished) -> bool:
        """Run what is due; whether any run was started."""
        started = False
        while starts := [one for one in self._starts(unfinished) if self._may_help(one)]:
            for start in starts:
                self._before[start.pulls] = self._state(start)
                self._runs.start(start)
                started = True
        return started

    def _may_help(self, start: RunStart) -> bool:
        """Whether another run would find anything else than the one before, which left all as it was."""
        return self._before.get(start.pulls) != self._state(start)

    def _starts(self, unfinished: Unfinished) -> list[RunStart]:
        return list(pull(self._domain, unfinished, self._domain.observe()))

    def _state(self, start: RunStart) -> tuple[dict[str, Backlog], str]:
        return self._domain.ledger.backlog(start.pulls), start.reason

    def of_others(self, unfinished: Unfinished) -> list[str]:
        """The kinds of which others do work, or are about to, while we run nothing."""
        return [
            kind
            for kind, tenants in self.backlogs().items()
            if any(one.running or (one.due and kind in unfinished.pulling) for one in tenants.values())
        ]


def run_until_idle(domain: Reconciler, runs: Runs) -> Reconciliation:
    """Reconcile and run until nothing is due and others have nothing; return what the last pass saw."""
    waiting, pulled = WaitingWork(domain.ledger, domain.kinds, runs), PulledWork(domain, runs)
    changed, hurry = time.monotonic(), True
    for _ in range(ROUNDS):
        runs.sweep(domain.ledger)
        unfinished = runs.unfinished()
        waiting.make_due(unfinished, hurry=False)
        observed = observe_and_enqueue(domain, unfinished)
        hurried = hurry and any([waiting.make_due(unfinished, hurry=True), pulled.make_due()])
        hurry = False
        if started := _run_all(domain, runs, observed.plan, unfinished):
            waiting.own.update(started)
        if pulled.run_all(unfinished) or started or hurried:
            changed = time.monotonic()
            continue
        others = [*(row.key for row in waiting.of_others(unfinished)), *pulled.of_others(unfinished)]
        if not (observed.left or others) or time.monotonic() - changed > PATIENCE:
            return observed
        runs.report_waiting(sorted({*observed.left, *others}))
        if _changes(waiting, pulled):
            changed = time.monotonic()
    raise PerennialError(f"{ROUNDS} passes and still more to do", reason_code="no_end")


def _is_sent(row: Work) -> bool:
    return row.dispatch_id is not None and row.dispatches > 0


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


def _changes(waiting: WaitingWork, pulled: PulledWork) -> bool:
    """Wait for a change of the work, for a few reads of the ledger; whether there was one."""
    before = _marks(waiting.rows()), pulled.backlogs()
    for _ in range(POLLS):
        time.sleep(POLL)
        if (_marks(waiting.rows()), pulled.backlogs()) != before:
            return True
    return False


def _marks(rows: Iterable[Work]) -> list[tuple[int, str, int]]:
    """What a heartbeat leaves as it is."""
    return [(row.id, row.status, row.fence) for row in rows]
