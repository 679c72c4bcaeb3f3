"""Dagster's SQLite event log, able to write many events in one transaction.

As shipped, each event opens and closes two databases, which takes 7 to 20 ms; a backfill of 250 days logs
4,000 events. The files and tables stay Dagster's own, so the shipped storage reads what this one wrote and
the other way round. Of Dagster's private parts only `_connect` and its lock are used (ADR 0027).
"""

# ruff: noqa: TID251
from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection


class EventLog(SqliteEventLogStorage):
    _writer: int | None = None
    """The thread whose transaction is open; every other thread waits for `_db_lock`."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        # A transaction holds the lock while it opens several databases.
        self._db_lock = threading.RLock()  # type: ignore[assignment]
        self._connections: dict[str, Connection] = {}
        self._commits = ExitStack()
        self._tables: set[str] = set()

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> EventLog:
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        """Commit the events of the body together at its end, also if the body raises."""
        if self._writer == threading.get_ident():
            yield
            return
        with self._db_lock:
            self._writer = threading.get_ident()
            try:
                yield
            finally:
                self._writer = None
                self._connections.clear()
                self._commits.close()

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        with self.one_transaction():
            super().store_event_batch(events)

    def delete_events(self, run_id: str) -> None:
        """Delete the database of the run too; the shipped storage only empties it."""
        super().delete_events(run_id)
        for suffix in ("", "-wal", "-shm"):
            Path(self.path_for_shard(run_id) + suffix).unlink(missing_ok=True)

    def has_table(self, table_name: str) -> bool:
        """Whether the table exists. Dagster asks for each event of a check; a table is never dropped."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        if self._writer == threading.get_ident():
            if shard not in self._connections:
                self._connections[shard] = self._commits.enter_context(super()._connect(shard))
            yield self._connections[shard]
            return
        if not Path(self.path_for_shard(shard)).exists():
            self._initialized_dbs.discard(shard)  # another process deleted this run
        with super()._connect(shard) as connection:
            yield connection
