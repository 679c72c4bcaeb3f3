"""Dagster's SQLite storage as we run it, which `dagster.yaml` names.

As shipped each opening reads all of Dagster's migrations three times, only to learn that nothing is to do:
90 ms of every command. And each question about a run makes an engine anew and compiles its statement again:
4 ms in the place of 2, for a daemon that asks all day. Here databases that are made are taken as they are,
and engines are kept. Files and tables are the same; what is missing or half made is left to Dagster.
"""

# ruff: noqa: TID251
from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.schedules import SqliteScheduleStorage
from dagster._core.storage.sqlite import create_db_conn_string
from dagster._core.storage.sqlite_storage import (
    DagsterSqliteStorage,
    _event_logs_directory,
    _runs_directory,
    _schedule_directory,
)
from dagster._serdes import ConfigurableClassData
from filelock import FileLock
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from orchestration.event_log import BUSY_SECONDS, EmbeddedEventLog, is_stamped


class _KeptEngine:
    _conn_string: str

    @cached_property
    def _engine(self) -> Engine:
        return _engine(self._conn_string)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection


class EmbeddedRuns(_KeptEngine, SqliteRunStorage):
    pass


class EmbeddedSchedules(_KeptEngine, SqliteScheduleStorage):
    pass


class EmbeddedStorage(DagsterSqliteStorage):
    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        runs = create_db_conn_string(_runs_directory(base_dir), "runs")
        events = create_db_conn_string(_event_logs_directory(base_dir), INDEX_SHARD_NAME)
        schedules = create_db_conn_string(_schedule_directory(base_dir), "schedules")
        # Of several processes that make the databases at once, some would note another schema version beside
        # the right one, and nobody could open them ever after: one goes first.
        with _alone(Path(base_dir)):
            if not all(_is_made(database) for database in (runs, events, schedules)):
                DagsterSqliteStorage(base_dir)
        super(DagsterSqliteStorage, self).__init__()  # type: ignore[no-untyped-call]
        self.base_dir = base_dir
        self._inst_data = inst_data
        self._run_storage = EmbeddedRuns(runs)
        self._event_log_storage = EmbeddedEventLog(_event_logs_directory(base_dir))
        self._schedule_storage = EmbeddedSchedules(schedules)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> EmbeddedStorage:
        return cls.from_local(inst_data=inst_data, **config_value)


def _engine(database: str) -> Engine:
    return create_engine(database, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})


def _is_made(database: str) -> bool:
    engine = _engine(database)
    if Path(str(engine.url.database)).exists():  # looking must not make it
        with suppress(DatabaseError), engine.connect() as connection:
            return is_stamped(connection)
    return False


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Where nobody can write, nobody makes databases either: then there is nothing to wait for."""
    with ExitStack() as held:
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(place / "storage.lock", timeout=BUSY_SECONDS))
        yield
