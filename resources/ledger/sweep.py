"""Sweeping: rows whose holder is dead are taken back and queued again, or given up."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from domain.shared.work import FAILED, RUNNING, Work
from resources.database.engine import writing
from resources.ledger.model import WORKER
from resources.ledger.outcome import Outcome
from resources.ledger.queries import Queries
from resources.ledger.rows import Change, lock_ids, recorded_statuses
from resources.ledger.settle import settle, write_settled
from resources.ledger.transitions import LEASE, orphaned


class SweepOperations(Queries):
    def sweep(self, *, finished_runs: Collection[str], now: datetime | None = None) -> list[Work]:
        """Take rows back from dead holders; returns them, with the dead holder as their run. `finished_runs`
        are those that Dagster calls finished or does not know; `now` stands in for the machine clock."""
        machine_now, clock_now = now or self.machine_clock(), self.clock()
        suspects = [row.id for row in self.running() if _why_orphan(row, finished_runs, machine_now)]
        if not suspects:
            return []
        with writing(self.engine) as connection:
            changes: list[Change] = []
            recorded = recorded_statuses(connection, suspects)
            # Read again under the lock: a heartbeat or an answer may have come in between.
            for row in lock_ids(connection, suspects):
                if why := _why_orphan(row, finished_runs, machine_now):
                    attempt = recorded.get(row.id) == RUNNING
                    silent = machine_now - row.lease_until + LEASE if row.lease_until else LEASE
                    after = orphaned(row, why=why, now=clock_now, silent=silent, attempt=attempt)
                    changes.append(Change(row, after, "abandoned" if after.status == FAILED else "orphaned"))
            written = write_settled(connection, changes, clock_now)
        orphans = {change.before.id for change in changes}
        return [row for row in written if row.id in orphans]

    def release_run(self, run_id: str) -> list[Work]:
        """Give back what an interrupted run holds; whatever it still writes changes nothing."""
        held = [row for row in self.running() if row.run_id == run_id]
        released, _ = settle(self, [(row.id, row.fence, Outcome("release", "interrupted")) for row in held])
        return released


def _why_orphan(
    row: Work, finished: Collection[str], machine_now: datetime
) -> Literal["run_finished", "lease_expired"] | None:
    if row.status != RUNNING:
        return None
    run_id = row.run_id or ""
    if run_id in finished and not run_id.startswith(WORKER):
        return "run_finished"
    if row.lease_until is None or row.lease_until < machine_now:
        return "lease_expired"
    return None
