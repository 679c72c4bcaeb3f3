"""Enqueueing: requests become rows; idempotent, set-based, one transaction for each kind."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

from sqlalchemy import Connection

from domain.shared.error import InvalidInput
from domain.shared.work import ACTIVE, Kind, WorkRequest
from resources.database.engine import reading, writing
from resources.database.statements import lock_name
from resources.ledger.context import LedgerContext
from resources.ledger.model import EnqueueReport
from resources.ledger.pipelines import join, missing_members
from resources.ledger.rows import Change, create, read_keys, write
from resources.ledger.transitions import decide_request

PARAMS_LIMIT = 4_096
"""Bytes of JSON a row may carry; larger payloads live in the domain's own table."""


class EnqueueOperations(LedgerContext):
    def enqueue(self, requests: Sequence[WorkRequest]) -> EnqueueReport:
        """Request work. Idempotent: the same requests again write nothing, and wait for no writer."""
        by_kind: dict[str, dict[str, WorkRequest]] = defaultdict(dict)
        for request in requests:
            _check(request)
            by_kind[request.kind][request.key] = request  # the last one of a batch counts
        report, now = EnqueueReport(), self.clock()
        for name in sorted(by_kind):
            kind, wanted = self.kind_named(name), by_kind[name]
            with reading(self.engine) as connection:
                decided, changes = _decide(connection, kind, wanted, now, lock=False)
                idle = not decided.created and not changes
                idle = idle and not missing_members(connection, _members(decided, wanted))
            if not idle:
                with writing(self.engine) as connection:
                    lock_name(connection, name)
                    decided, changes = _decide(connection, kind, wanted, now, lock=True)
                    decided.created[:] = create(connection, decided.created, now)
                    write(connection, changes, now)
                    join(connection, _members(decided, wanted))
            for one in fields(report):
                getattr(report, one.name).extend(getattr(decided, one.name))
        return report


def _check(request: WorkRequest) -> None:
    if not request.key:
        raise InvalidInput(f"work of kind {request.kind} was requested without a key")
    size = len(json.dumps(dict(request.params), ensure_ascii=False).encode())
    if size > PARAMS_LIMIT:
        raise InvalidInput(
            f"the params of {request.kind} {request.key} take {size} bytes, {PARAMS_LIMIT} are allowed",
            reason_code="params_too_large",
            remedy="keep the payload in the domain's own table and point at it",
        )


def _decide(
    connection: Connection, kind: Kind, requests: Mapping[str, WorkRequest], now: datetime, *, lock: bool
) -> tuple[EnqueueReport, list[Change]]:
    decided, changes = EnqueueReport(), []
    for key, state in read_keys(connection, kind.name, requests, lock=lock).items():
        decision, row = decide_request(requests[key], kind, state, now)
        getattr(decided, decision).append(row)
        if decision == "updated" and state.waiting is not None:
            changes.append(Change(state.waiting, row, "updated"))
    return decided, changes


def _members(decided: EnqueueReport, requests: Mapping[str, WorkRequest]) -> dict[int, tuple[str, ...]]:
    """By row, the pipelines it joins. A finished row that absorbed its request worked for others."""
    rows = [*decided.created, *decided.updated, *decided.absorbed]
    return {row.id: requests[row.key].pipelines for row in rows if row.status in ACTIVE}
