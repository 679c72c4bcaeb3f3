"""What Dagster's storage says of its daemon and its unfinished runs, read without importing Dagster.

Reading two of Dagster's tables takes a millisecond; opening its instance takes a second (ADR 0043).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domain.shared.error import PerennialError
from domain.shared.platform_health import UnfinishedRun
from orchestration.settings import Settings

HEARTBEATS = "SELECT body FROM daemon_heartbeats"
UNFINISHED = (
    "SELECT run_id, MOMENT(create_timestamp), MOMENT(update_timestamp) FROM runs "
    "WHERE status IN ('STARTED', 'STARTING', 'NOT_STARTED', 'CANCELING') ORDER BY id DESC LIMIT 50"
)
NEWEST_RUN = "SELECT MOMENT(create_timestamp) FROM runs ORDER BY id DESC LIMIT 1"
NEWEST_EVENT = "SELECT timestamp FROM event_logs WHERE run_id = ? ORDER BY id DESC LIMIT 1"
"""Dagster stores moments without a zone: those of events in UTC; those of runs in UTC too, but in Postgres in
the zone of the database, which `MOMENT` gives back."""

Query = Callable[..., Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class DagsterState:
    heartbeat: datetime | None = None
    runs: tuple[UnfinishedRun, ...] = ()
    newest_run: datetime | None = None
    now: datetime | None = None
    """The time of the database's machine, if it is a server."""


def read_dagster(settings: Settings) -> DagsterState:
    """Return the state; an empty one if there is no storage yet, or it cannot be read."""
    if settings.env == "production":
        # What is wrong with this database is the finding about the ledger, which lives there too.
        with suppress(PerennialError), _postgres(settings.database_url) as query:
            return _state(query, lambda run_id: query(NEWEST_EVENT, run_id), "SELECT now()")
        return DagsterState()
    history = settings.dagster_home / "history"
    with _sqlite(history / "runs.db") as query:
        return _state(query, lambda run_id: _events(history / "runs" / f"{run_id}.db", run_id))


def _state(query: Query, events: Callable[[str], Sequence[Sequence[Any]]], clock: str = "") -> DagsterState:
    runs = []
    for run_id, created, updated in query(UNFINISHED):
        signs = [sign for sign in (_utc(created), _utc(updated), _moment(events(run_id))) if sign]
        runs.append(UnfinishedRun(run_id, signs[0], max(signs)))
    now = _moment(query(clock)) if clock else None
    beats = filter(None, (_heartbeat(body) for [body] in query(HEARTBEATS)))
    return DagsterState(max(beats, default=None), tuple(runs), _moment(query(NEWEST_RUN)), now)


def _heartbeat(body: str | None) -> datetime | None:
    """Return its moment; None if the row says none, as one that a daemon of another version wrote."""
    with suppress(TypeError, ValueError, KeyError, OverflowError, OSError):
        return datetime.fromtimestamp(json.loads(body or "")["timestamp"], UTC)
    return None


def _events(path: Path, run_id: str) -> Sequence[Sequence[Any]]:
    with _sqlite(path) as query:
        return query(NEWEST_EVENT, run_id)


@contextmanager
def _sqlite(path: Path) -> Iterator[Query]:
    if not path.is_file():
        yield lambda *_: ()
        return
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=2)) as connection:

        def query(sql: str, *values: str) -> Sequence[Sequence[Any]]:
            try:
                return connection.execute(sql.replace("MOMENT", ""), values).fetchall()
            except sqlite3.Error:  # not made yet, or broken: then what opens it says so
                return ()

        yield query


@contextmanager
def _postgres(url: str) -> Iterator[Query]:
    from resources.database.engine import open_engine
    from resources.database.errors import driver_errors

    engine = open_engine(url)
    with driver_errors(engine), engine.connect() as connection:

        def query(sql: str, *values: str) -> Sequence[Sequence[Any]]:
            written = sql.replace("?", "%s").replace("MOMENT", "timestamptz")
            return connection.exec_driver_sql(written, values).fetchall()

        made = query("SELECT to_regclass('runs'), to_regclass('daemon_heartbeats')")[0]
        yield query if all(made) else lambda *_: ()


def _moment(rows: Sequence[Sequence[Any]]) -> datetime | None:
    return _utc(rows[0][0]) if rows else None


def _utc(value: Any) -> datetime | None:
    """Return a stored moment; one without a zone is in UTC."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
