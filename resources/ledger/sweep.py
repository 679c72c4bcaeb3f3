"""Orphans: rows whose holder is dead are taken from it and queued again, or given up.

Every look also mends what a clock that ran ahead would otherwise keep for as long (`setback.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Literal

from sqlalchemy import Engine

from domain.shared.work import Kind
from resources.database.engine import reading, writing
from resources.ledger.model import WORKER, Swept, Work
from resources.ledger.rows import Change, as_work, lock_ids, select_work
from resources.ledger.schema import FAILED, RUNNING, is_running
from resources.ledger.setback import count_waits_anew, cut_leases, is_impossible
from resources.ledger.settle import policy_of, write_settled
from resources.ledger.transitions import orphaned

Why = Literal["run_finished", "lease_expired"]


def sweep(
    engine: Engine,
    kinds: Mapping[str, Kind],
    *,
    finished_runs: Collection[str],
    machine_now: datetime,
    now: datetime,
) -> list[Swept]:
    swept = _orphans(engine, kinds, frozenset(finished_runs), machine_now, now)
    count_waits_anew(engine, now)
    return swept


def _orphans(
    engine: Engine, kinds: Mapping[str, Kind], finished: frozenset[str], machine_now: datetime, now: datetime
) -> list[Swept]:
    with reading(engine) as connection:
        running = map(as_work, connection.execute(select_work().where(is_running())))
        suspects = [
            row.id
            for row in running
            if _why_orphan(row, finished, machine_now) or is_impossible(row, machine_now)
        ]
    if not suspects:
        return []
    with writing(engine) as connection:
        changes: list[Change] = []
        impossible: list[Work] = []
        taken: dict[int, tuple[str, Why]] = {}
        # Looked at again under the lock: a heartbeat or an answer may have come in between.
        for row in lock_ids(connection, suspects):
            why = _why_orphan(row, finished, machine_now)
            if why is None:
                if is_impossible(row, machine_now):
                    impossible.append(row)
                continue
            after = orphaned(row, policy_of(kinds, row), why=why, now=now)
            changes.append(Change(row, after, "abandoned" if after.status == FAILED else "orphaned"))
            taken[row.id] = (row.run_id or "", why)
        written = write_settled(connection, changes, now)
        if impossible:
            cut_leases(connection, impossible, machine_now, now)
    return [Swept(row, *taken[row.id]) for row in written if row.id in taken]


def _why_orphan(row: Work, finished: frozenset[str], machine_now: datetime) -> Why | None:
    if row.status != RUNNING:
        return None
    run_id = row.run_id or ""
    if run_id in finished and not run_id.startswith(WORKER):
        return "run_finished"
    if row.lease_until is None or row.lease_until < machine_now:
        return "lease_expired"
    return None
