"""Dagster's event log on SQLite, only faster. Same files, same tables: either reads the other's.

As shipped every event makes SQLAlchemy engines anew, opens and closes two databases and compiles its
statements again: 10 ms, which for a backfill (an event per table and day, several times) is most of the
run. Here engines are kept, and `one_transaction` writes many events at once, each turned into text once and
by statements that are compiled once. Connections are still closed after each transaction: the UI follows a
run by the changes of its file, which SQLite makes on closing. And with the events of a run its file goes.

With `embedded.py` the one place that builds on Dagster's private parts; a test says loudly when an upgrade
moves them.
"""

# ruff: noqa: TID251
from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dagster._core.events import (
    ASSET_CHECK_EVENTS,
    ASSET_EVENTS,
    EVENT_TYPE_TO_PIPELINE_RUN_STATUS,
    DagsterEventType,
)
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, bindparam, create_engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

BUSY_SECONDS = 60
"""How long a write waits for another process's."""
KEPT_ENGINES = 32
"""Each run has a database of its own; a daemon looks at many."""


INDEXED = {*ASSET_EVENTS, *ASSET_CHECK_EVENTS, *EVENT_TYPE_TO_PIPELINE_RUN_STATUS}
"""Also written where they are found without knowing the run."""
INSERT = SqlEventLogStorageTable.insert()
EVALUATED = (
    AssetCheckExecutionsTable.update()
    .where(
        AssetCheckExecutionsTable.c.asset_key == bindparam("of_asset"),
        AssetCheckExecutionsTable.c.check_name == bindparam("of_check"),
        AssetCheckExecutionsTable.c.run_id == bindparam("of_run"),
        AssetCheckExecutionsTable.c.partition.is_not_distinct_from(bindparam("of_partition")),
    )
    .values(
        execution_status=bindparam("status"),
        evaluation_event=bindparam("event"),
        evaluation_event_timestamp=bindparam("timestamp"),
        evaluation_event_storage_id=bindparam("event_id"),
        materialization_event_storage_id=bindparam("target"),
    )
)
"""What an evaluation makes of the row that was planned for it."""


@dataclass(frozen=True)
class _Told:
    """An event and its row of the event log."""

    event: EventLogEntry
    row: dict[str, Any]

    @property
    def kind(self) -> DagsterEventType | None:
        return self.event.dagster_event_type if self.event.is_dagster_event else None


class EmbeddedEventLog(SqliteEventLogStorage):
    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._turn = threading.RLock()
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._compiled: dict[Any, Any] = {}
        self._waiting: list[_Told] | None = None
        self._open: dict[str, Connection] = {}
        self._tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        """Events stored inside are written together at the end, also if the body raises."""
        with self._turn:
            if self._waiting is not None:
                yield
                return
            waiting = self._waiting = []
            try:
                yield
            finally:  # a disk that refuses this once must not be refused by us for ever
                self._waiting = None
                self._write(waiting)

    def store_event(self, event: EventLogEntry) -> None:
        self.store_event_batch([event])

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        told = [_Told(event, self._event_to_row(event)) for event in events]
        with self._turn:
            if self._waiting is None:
                self._write(told)
            else:
                self._waiting += told

    def delete_events(self, run_id: str) -> None:
        """Shipped, the run's database is only emptied: its file stays as large as it was."""
        with self._turn:
            super().delete_events(run_id)
            for ending in ("", "-wal", "-shm"):
                Path(self.path_for_shard(run_id) + ending).unlink(missing_ok=True)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._turn:
            if (being_written := self._open.get(shard)) is not None:
                yield being_written
                return
            with self._engine(shard).begin() as connection:
                yield connection

    def _engine(self, shard: str) -> Engine:
        if not Path(self.path_for_shard(shard)).exists():  # new, or deleted by whatever process
            self._engines.pop(shard, None)
            self._initialized_dbs.discard(shard)
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

    def _initdb(self, engine: Engine, for_index_shard: bool = False) -> None:
        """A run's database becomes in one transaction what Dagster would make of it, reading all of its
        migrations three times: 65 ms for each run. One that was left half made is Dagster's to mend."""
        with suppress(DatabaseError), engine.connect() as connection:
            if not for_index_shard:
                self._make(connection)
            if is_stamped(connection):
                return
        super()._initdb(engine, for_index_shard=for_index_shard)

    def _make(self, connection: Connection) -> None:
        if not connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first():
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            if not connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first():
                for statement in _as_made():
                    connection.exec_driver_sql(statement)
            connection.commit()

    def has_table(self, table_name: str) -> bool:
        """Asked for every event; a table that is there stays."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def _write(self, told: Sequence[_Told]) -> None:
        """Each event into its run's database, and those of assets and of runs' states into the index."""
        by_run: dict[str, list[dict[str, Any]]] = {}
        for one in told:
            by_run.setdefault(one.event.run_id, []).append(one.row)
        indexed = [one for one in told if one.kind in INDEXED]
        with ExitStack() as closing:
            try:
                for run_id, rows in by_run.items():
                    self._begin(run_id, closing).execute(INSERT, rows)
                if indexed:
                    self._index(self._begin(INDEX_SHARD_NAME, closing), indexed)
                for connection in self._open.values():
                    connection.commit()
            finally:
                self._open = {}

    def _begin(self, shard: str, closing: ExitStack) -> Connection:
        connection = closing.enter_context(self._engine(shard).connect())
        connection.begin()  # else Dagster would begin and commit one for each event
        self._open[shard] = connection
        return connection

    def _index(self, connection: Connection, told: Sequence[_Told]) -> None:
        """An asset's row keeps its newest event of a kind only: of these the last one counts."""
        # Nobody else writes meanwhile, so the numbers follow each other.
        first = connection.execute(INSERT, told[0].row).inserted_primary_key[0]  # type: ignore[index]
        if len(told) > 1:
            connection.execute(INSERT, [one.row for one in told[1:]])
        newest: dict[tuple[str, str], tuple[EventLogEntry, int]] = {}
        for number, one in enumerate(told, start=first):
            if one.kind in ASSET_EVENTS:
                place = (one.row["asset_key"], one.row["dagster_event_type"])
                newest.pop(place, None)
                newest[place] = (one.event, number)
            elif one.kind == DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED:
                self._plan_checks(connection, one, number)
            elif one.kind == DagsterEventType.ASSET_CHECK_EVALUATION:
                self._evaluate_check(connection, one, number)
        of_assets = {n: one.event for n, one in enumerate(told, start=first) if one.kind in ASSET_EVENTS}
        self._store_asset_event_tags(connection, list(of_assets.values()), list(of_assets))
        for event, number in newest.values():
            self._store_asset_event(connection, event, number)

    def _plan_checks(self, connection: Connection, told: _Told, number: int) -> None:
        """One row for each partition of the run. Shipped, each has the event turned into text again."""
        planned = told.event.get_dagster_event().asset_check_planned_data
        subset = planned.partitions_subset
        shared = {
            "asset_key": planned.asset_key.to_string(),
            "check_name": planned.check_name,
            "run_id": told.event.run_id,
            "execution_status": AssetCheckExecutionRecordStatus.PLANNED.value,
            "evaluation_event": told.row["event"],
            "evaluation_event_timestamp": told.row["timestamp"],
            "evaluation_event_storage_id": number,
        }
        partitions = subset.get_partition_keys() if subset else [None]
        rows = [{**shared, "partition": partition} for partition in partitions]
        connection.execute(AssetCheckExecutionsTable.insert(), rows)

    def _evaluate_check(self, connection: Connection, told: _Told, number: int) -> None:
        evaluation = told.event.get_dagster_event().asset_check_evaluation_data
        target = evaluation.target_materialization_data
        status = (
            AssetCheckExecutionRecordStatus.SUCCEEDED
            if evaluation.passed
            else AssetCheckExecutionRecordStatus.FAILED
        )
        values = {
            "of_asset": evaluation.asset_key.to_string(),
            "of_check": evaluation.check_name,
            "of_run": told.event.run_id,
            "of_partition": evaluation.partition,
            "status": status.value,
            "event": told.row["event"],
            "timestamp": told.row["timestamp"],
            "event_id": number,
            "target": target.storage_id if target else None,
        }
        if not told.event.run_id or not connection.execute(EVALUATED, values).rowcount:
            self.store_asset_check_event(told.event, number)  # nobody planned it: a new row


def is_stamped(connection: Connection) -> bool:
    """Whether Dagster is done with making this database; an error where it has hardly begun."""
    return connection.exec_driver_sql("SELECT 1 FROM alembic_version").first() is not None


@cache
def _as_made() -> tuple[str, ...]:
    """What Dagster does to an empty database."""
    with TemporaryDirectory() as folder:
        made = SqliteEventLogStorage(folder)
        with made.index_connection() as connection:
            tables = connection.exec_driver_sql(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            ).scalars()
            [revision] = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars()
            return (*tables, f"INSERT INTO alembic_version VALUES ('{revision}')")
