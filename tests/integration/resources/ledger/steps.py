"""What the tests of the ledger do again and again."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from sqlalchemy import event

from domain.shared.work import Work, WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.lease import Lease

FILL, FINITE = "market.fill", "records.hook"


def enqueue(ledger: Ledger, *keys: str, kind: str = FILL, **more: object) -> list[Work]:
    return ledger.enqueue([WorkRequest(kind, key, "f", **more) for key in keys]).created


def claimed(ledger: Ledger, kind: str = FILL, **more: object) -> Work:
    (row,) = ledger.claim(kind, holder="worker:1", limit=1, **more)
    return row


def lease(ledger: Ledger, *keys: str, run: str = "run", kind: str = FILL, **more: object) -> Lease:
    return ledger.lease(kind, keys, run, heartbeat=False, **more)


def leave_with(ledger: Ledger, error: BaseException, *keys: str, **more: object) -> None:
    """A run whose body raises this error."""
    with pytest.raises(type(error)), lease(ledger, *keys, **more):
        raise error


def die(ledger: Ledger, run: str, key: str = "a", kind: str = FILL) -> Work:
    """A run that leases the key and is killed."""
    held = lease(ledger, key, run=run, kind=kind)
    held.__enter__()
    return held.work[key]


def the(ledger: Ledger, key: str) -> Work:
    """The newest row of a key."""
    return ledger.find(key_prefix=key)[0]


@contextmanager
def statements(ledger: Ledger):
    """Every statement that the ledger sends meanwhile."""
    sent: list[str] = []

    def note(*arguments: object) -> None:
        sent.append(str(arguments[2]))

    event.listen(ledger.engine, "before_cursor_execute", note)
    yield sent
    event.remove(ledger.engine, "before_cursor_execute", note)
