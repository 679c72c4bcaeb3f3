"""Dagster's SQLite storage, with a faster event log. Same files, same tables: either reads the other's.

As shipped every event makes SQLAlchemy engines anew, opens and closes two databases and compiles its
statements again: 10 ms, which for a backfill (an event per table and day, several times) is most of the
run. Here engines are kept, and `one_transaction` writes many events at once. Connections are still closed
after each transaction: the UI follows a run by the changes of its file, which SQLite makes on closing.

The one place that builds on Dagster's private parts; a test says loudly when an upgrade moves them.
"""

# ruff: noqa: SLF001, TID251
from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from filelock import FileLock
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool

BUSY_SECONDS = 60
"""How long a write waits for another process's."""
KEPT_ENGINES = 32
"""Each run has a database of its own; a daemon looks at many."""


class EmbeddedEventLog(SqliteEventLogStorage):
    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._turn = threading.RLock()
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._compiled: dict[Any, Any] = {}
        self._open: dict[str, Connection] | None = None
        self._latest: dict[tuple[str, Any], tuple[EventLogEntry, int]] = {}
        self._closing = ExitStack()
        self._tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        """Events stored inside are written together at the end, also if the body raises."""
        with self._turn:
            if self._open is not None:
                yield
                return
            self._open, self._latest = {}, {}
            with ExitStack() as closing:
                self._closing = closing
                try:
                    yield
                finally:
                    self._write_all(self._open)

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        with self.one_transaction():
            for event in events:
                self.store_event(event)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._turn:
            if self._open is None:
                with self._engine(shard).begin() as connection:
                    yield connection
                return
            if shard not in self._open:
                connection = self._closing.enter_context(self._engine(shard).connect())
                connection.begin()  # else Dagster would begin and commit one for each event
                self._open[shard] = connection
            yield self._open[shard]

    def _engine(self, shard: str) -> Engine:
        if (known := self._engines.get(shard)) is not None:
            self._engines.move_to_end(shard)
            return known
        engine = create_engine(
            self.conn_string_for_shard(shard), poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS}
        ).execution_options(compiled_cache=self._compiled)
        if shard not in self._initialized_dbs:
            self._initdb(engine, for_index_shard=shard == INDEX_SHARD_NAME)
            self._initialized_dbs.add(shard)
        self._engines[shard] = engine
        while len(self._engines) > KEPT_ENGINES:
            self._engines.popitem(last=False)
        return engine

    def has_table(self, table_name: str) -> bool:
        """Asked for every event; a table that is there stays."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def _store_asset_event(self, conn: Connection, event: EventLogEntry, event_id: int) -> None:
        """An asset's row keeps its newest event only: of a transaction's the last one counts."""
        step = event.dagster_event
        if self._open is None or step is None or step.asset_key is None:
            super()._store_asset_event(conn, event, event_id)
            return
        place = (step.asset_key.to_string(), step.event_type)
        self._latest.pop(place, None)
        self._latest[place] = (event, event_id)

    def _write_all(self, connections: Mapping[str, Connection]) -> None:
        try:
            for event, number in self._latest.values():
                with self.index_connection() as connection:
                    super()._store_asset_event(connection, event, number)
            for connection in connections.values():
                connection.commit()
        finally:  # a disk that refused this once must not be refused by us for ever
            self._open, self._latest = None, {}


class EmbeddedStorage(DagsterSqliteStorage):
    """What `dagster.yaml` names."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        # Of several processes that make the databases at once, some would note another schema version beside
        # the right one, and nobody could open them ever after: one goes first.
        with _alone(Path(base_dir)):
            super().__init__(base_dir, inst_data)
            shipped = self._event_log_storage
            self._event_log_storage = EmbeddedEventLog(shipped._base_dir)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> EmbeddedStorage:
        return cls.from_local(inst_data=inst_data, **config_value)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Where nobody can write, nobody makes databases either: then there is nothing to wait for."""
    with ExitStack() as held:
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(place / "storage.lock", timeout=BUSY_SECONDS))
        yield
