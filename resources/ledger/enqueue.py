"""Wishes become rows: idempotent, set-based, one transaction for each kind."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, Engine

from domain.shared.error import InvalidInput
from domain.shared.work import Kind, WorkRequest
from resources.database.engine import writing
from resources.database.statements import lock_name
from resources.ledger.model import EnqueueReport, Work
from resources.ledger.pipelines import join
from resources.ledger.rows import Change, create, read_keys, write
from resources.ledger.schema import ACTIVE
from resources.ledger.transitions import judge_request

PARAMS_LIMIT = 4_096
"""Bytes of JSON a row may carry; larger payloads live in the domain's own table."""


def enqueue(
    engine: Engine, kinds: Mapping[str, Kind], items: Sequence[WorkRequest], now: datetime
) -> EnqueueReport:
    by_kind: dict[str, dict[str, WorkRequest]] = defaultdict(dict)
    for item in items:
        _check(item)
        by_kind[item.kind][item.key] = item  # the last word of one batch counts
    report = EnqueueReport()
    for name in sorted(by_kind):
        kind = kind_named(kinds, name)
        with writing(engine) as connection:
            lock_name(connection, name)
            _enqueue_kind(connection, kind, by_kind[name], now, report)
    return report


def kind_named(kinds: Mapping[str, Kind], name: str) -> Kind:
    try:
        return kinds[name]
    except KeyError:
        raise InvalidInput(
            f"there is no kind of work named {name!r}",
            reason_code="unknown_kind",
            remedy=f"known kinds: {', '.join(sorted(kinds)) or 'none'}",
        ) from None


def _check(item: WorkRequest) -> None:
    if not item.key:
        raise InvalidInput(f"work of kind {item.kind} was wished for without a key")
    size = len(json.dumps(dict(item.params), ensure_ascii=False).encode())
    if size > PARAMS_LIMIT:
        raise InvalidInput(
            f"the params of {item.kind} {item.key} take {size} bytes, {PARAMS_LIMIT} are allowed",
            reason_code="params_too_large",
            remedy="keep the payload in the domain's own table and point at it",
        )


def _enqueue_kind(
    connection: Connection, kind: Kind, items: Mapping[str, WorkRequest], now: datetime, report: EnqueueReport
) -> None:
    states = read_keys(connection, kind.name, items, lock=True)
    births: list[Work] = []
    changes: list[Change] = []
    for key, item in items.items():
        state = states[key]
        verdict, row = judge_request(
            item, kind, waiting=state.waiting, running=state.running, standing=state.standing, now=now
        )
        if verdict == "create":
            births.append(row)
        elif verdict == "update" and state.waiting is not None:
            changes.append(Change(state.waiting, row, "updated"))
            report.updated.append(row)
        elif verdict == "absorb":
            report.absorbed.append(row)
        else:
            report.refused.append(row)
    created = create(connection, births, now)
    report.created.extend(created)
    write(connection, changes, now)
    # A finished row that absorbed its wish did what it did for others.
    live = [row for row in (*report.absorbed, *report.updated) if row.status in ACTIVE]
    join(connection, {row.id: items[row.key].pipelines for row in (*created, *live) if row.key in items})
