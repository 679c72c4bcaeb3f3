"""Enqueueing: requests become rows; idempotent, set-based, one transaction for each kind."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from domain.shared.error import InvalidInput
from domain.shared.work import Kind, WorkRequest
from resources.database.engine import reading, writing
from resources.database.statements import lock_name
from resources.ledger.context import LedgerContext
from resources.ledger.model import EnqueueReport, Work
from resources.ledger.pipelines import join, missing_members
from resources.ledger.rows import Change, create, read_keys, write
from resources.ledger.schema import ACTIVE
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
            kind = self.kind_named(name)
            with reading(self.engine) as connection:
                decided = _decide(connection, kind, by_kind[name], now, lock=False)
                idle = decided.writes_nothing and not missing_members(connection, decided.members())
            if not idle:
                with writing(self.engine) as connection:
                    lock_name(connection, name)
                    decided = _decide(connection, kind, by_kind[name], now, lock=True)
                    _write(connection, decided, now)
            report.created.extend(decided.created)
            report.updated.extend(change.after for change in decided.updated)
            report.absorbed.extend(decided.absorbed)
            report.refused.extend(decided.refused)
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


@dataclass
class _Decided:
    requests: Mapping[str, WorkRequest]
    created: list[Work] = field(default_factory=list)
    updated: list[Change] = field(default_factory=list)
    absorbed: list[Work] = field(default_factory=list)
    refused: list[Work] = field(default_factory=list)

    @property
    def writes_nothing(self) -> bool:
        return not self.created and not self.updated

    def members(self) -> dict[int, tuple[str, ...]]:
        """By row, the pipelines it joins. A finished row that absorbed its request worked for others."""
        rows = [*self.created, *(change.after for change in self.updated), *self.absorbed]
        return {row.id: self.requests[row.key].pipelines for row in rows if row.status in ACTIVE}


def _decide(
    connection: Connection, kind: Kind, requests: Mapping[str, WorkRequest], now: datetime, *, lock: bool
) -> _Decided:
    decided = _Decided(requests)
    for key, state in read_keys(connection, kind.name, requests, lock=lock).items():
        decision, row = decide_request(requests[key], kind, state, now)
        if decision == "create":
            decided.created.append(row)
        elif decision == "update" and state.waiting is not None:
            decided.updated.append(Change(state.waiting, row, "updated"))
        elif decision == "absorb":
            decided.absorbed.append(row)
        else:
            decided.refused.append(row)
    return decided


def _write(connection: Connection, decided: _Decided, now: datetime) -> None:
    decided.created = create(connection, decided.created, now)
    write(connection, decided.updated, now)
    join(connection, decided.members())
