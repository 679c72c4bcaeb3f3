"""How attempts end: holders' answers, compare-and-set on (id, fence), many rows in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine

from domain.shared.work import UNCLASSIFIED, Kind
from resources.database.engine import writing
from resources.ledger.model import Work
from resources.ledger.outcome import Outcome
from resources.ledger.pipelines import inherit
from resources.ledger.rows import Change, lock_ids, lock_waiting_siblings, write
from resources.ledger.schema import RUNNING, WAITING
from resources.ledger.transitions import settled, superseded

EVENTS = {
    "complete": "completed",
    "skip": "skipped",
    "defer": "deferred",
    "fail": "failed",
    "release": "released",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the holder of row `id` under `fence` says became of it."""

    id: int
    fence: int
    outcome: Outcome


def settle(
    engine: Engine, kinds: Mapping[str, Kind], answers: Sequence[Answer], now: datetime
) -> tuple[list[Work], list[int]]:
    """Write these answers. Gives the rows afterwards and the ids whose holder is no longer who answers."""
    if not answers:
        return [], []
    with writing(engine) as connection:
        rows = {row.id: row for row in lock_ids(connection, [answer.id for answer in answers])}
        changes: list[Change] = []
        stale: list[int] = []
        for answer in answers:
            row = rows.get(answer.id)
            if row is None or row.fence != answer.fence or row.status != RUNNING:
                stale.append(answer.id)
                continue
            after = settled(row, answer.outcome, policy_of(kinds, row), now)
            verb = answer.outcome.verb
            gave_up = verb == "defer" and after.status not in WAITING
            changes.append(Change(row, after, "failed" if gave_up else EVENTS[verb]))
        written = write_settled(connection, changes, now)
    return written, stale


def write_settled(connection: Connection, changes: Sequence[Change], now: datetime) -> list[Work]:
    """Write rows that leave `running`; those that would wait beside a newer wish end in its favour."""
    back = [change.before for change in changes if change.after.status in WAITING]
    siblings = lock_waiting_siblings(connection, back)
    final: list[Change] = []
    heirs: list[tuple[int, int]] = []
    for change in changes:
        newer = siblings.get((change.before.kind, change.before.key))
        if newer is None or change.after.status not in WAITING:
            final.append(change)
            continue
        ended, heir = superseded(change.before, change.after, newer, now)
        final += [Change(change.before, ended, "superseded"), Change(newer, heir, "inherited")]
        heirs.append((ended.id, heir.id))
    write(connection, final, now)
    inherit(connection, heirs)
    return [change.after for change in final]


def policy_of(kinds: Mapping[str, Kind], row: Work) -> Kind:
    """The row's kind; one that the program dropped meanwhile gets few attempts, then a person looks."""
    return kinds.get(row.kind) or Kind(name=row.kind, transient=UNCLASSIFIED)
