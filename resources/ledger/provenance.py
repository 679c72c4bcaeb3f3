"""What was committed to the lake, partition by partition, and which partitions the source changed later.

A record is content (rows and digest), what it was made from, and how often the source sent it again.
A revision is a record whose content changed; its snapshots must not expire before its values are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, and_, case, func, insert, select, update

from domain.shared.clock import Clock
from resources.database.engine import reading, writing
from resources.database.statements import insert_into, lock_name, rows_in
from resources.ledger.schema import partition_record, partition_revision


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """What one partition contains. The last four fields are the ledger's own: `record` ignores them.

    `seen_count` counts fetches in a row that brought this same content, `generation` its changes;
    `committed_at` is when this content first came, `checked_at` when the source was last asked.
    """

    table_name: str
    partition: str
    rows: int
    digest: str
    snapshot_id: int | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    run_id: str = ""
    seen_count: int = 1
    generation: int = 1
    committed_at: datetime | None = None
    checked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """One change of content the source made: the snapshots that show it before and after."""

    id: int
    table_name: str
    partition: str
    old_snapshot_id: int | None
    new_snapshot_id: int | None
    seen_at: datetime


_RECORD = [partition_record.c[column.name] for column in fields(PartitionRecord)]
_REVISION = [partition_revision.c[column.name] for column in fields(Revision)]


@dataclass(frozen=True, slots=True)
class Provenance:
    engine: Engine
    clock: Clock

    def record(
        self,
        entries: Sequence[PartitionRecord],
        *,
        revision: bool = False,
        parent_snapshot_id: int | None = None,
    ) -> None:
        """Write these records, in one transaction. With `revision`, changed content is noted as a revision.

        `parent_snapshot_id` is the table's snapshot just before the commit: it shows the old content even
        where the snapshot that first had it is gone. Of several entries for one partition the last counts.
        """
        newest = {(entry.table_name, entry.partition): entry for entry in entries}
        if not newest:
            return
        now, records = self.clock(), [newest[name] for name in sorted(newest)]
        tables = sorted({record.table_name for record in records})
        with writing(self.engine) as connection:
            # In turns, always in one order of names: rows locked in different orders would deadlock.
            for table in tables:
                lock_name(connection, table)
            if revision:
                known = _read(connection, tables, {record.partition for record in records})
                changed = [
                    _revision(known[name], new, now, parent_snapshot_id)
                    for name, new in sorted(newest.items())
                    if name in known and (known[name].rows, known[name].digest) != (new.rows, new.digest)
                ]
                if changed:
                    connection.execute(insert(partition_revision), changed)
            connection.execute(_upsert(connection), [_values(record, now) for record in records])

    def records(
        self, tables: Collection[str], partitions: Collection[str] | None = None
    ) -> dict[tuple[str, str], PartitionRecord]:
        """The records of these tables, of all their partitions or only of those named."""
        with reading(self.engine) as connection:
            return _read(connection, tables, partitions)

    def contents(
        self, tables: Collection[str]
    ) -> list[tuple[str, str, int, str, Mapping[str, str], int, str | None]]:
        """Of every record of these tables: table, partition, rows, digest, inputs, how often it was seen, and
        the status in its detail. A tenth of the cost of whole records."""
        record = partition_record.c
        status = record.detail["status"].as_string()
        query = select(
            record.table_name,
            record.partition,
            record.rows,
            record.digest,
            record.inputs,
            record.seen_count,
            status,
        ).where(record.table_name.in_(list(tables)))
        with reading(self.engine) as connection:
            rows: Any = connection.execute(query).fetchall()
            return list(rows)

    def stamp(self, tables: Collection[str]) -> str:
        """What changes with every record of these tables that is written or lost, for little."""
        record = partition_record.c
        query = select(func.count(), func.sum(record.rows), func.max(record.checked_at)).where(
            record.table_name.in_(list(tables))
        )
        with reading(self.engine) as connection:
            return " ".join(map(str, connection.execute(query).one()))

    def pending_revisions(self, table: str = "") -> list[Revision]:
        """Revisions, of all tables or of one, whose old and new values are not kept yet, oldest first."""
        query = select(*_REVISION).where(partition_revision.c.recorded.is_(False))
        if table:
            query = query.where(partition_revision.c.table_name == table)
        with reading(self.engine) as connection:
            return [Revision(*row) for row in connection.execute(query.order_by(partition_revision.c.id))]

    def mark_recorded(self, revisions: Iterable[Revision]) -> None:
        mine = partition_revision.c.id.in_([revision.id for revision in revisions])
        with writing(self.engine) as connection:
            connection.execute(update(partition_revision).where(mine).values(recorded=True))

    def pinned_snapshots(self, table: str) -> set[int]:
        """Snapshots of the table that must not expire: a pending revision is read out of them.

        The records' own snapshots are not pinned: nothing reads them, and they would keep every file.
        """
        pending = self.pending_revisions(table)
        shown = {number for one in pending for number in (one.old_snapshot_id, one.new_snapshot_id)}
        return {number for number in shown if number is not None}


def _read(
    connection: Connection, tables: Collection[str], partitions: Collection[str] | None
) -> dict[tuple[str, str], PartitionRecord]:
    query = select(*_RECORD).where(partition_record.c.table_name.in_(list(tables)))
    rows: Iterable[Any]
    if partitions is None:
        rows = connection.execute(query)
    else:
        rows = rows_in(connection, query, partition_record.c.partition, partitions)
    return {(row[0], row[1]): PartitionRecord(*row) for row in rows}


_GIVEN = ("table_name", "partition", "rows", "digest", "snapshot_id", "inputs", "detail", "run_id")


def _values(record: PartitionRecord, now: datetime) -> dict[str, Any]:
    given = {name: getattr(record, name) for name in _GIVEN}
    return {**given, "seen_count": 1, "generation": 1, "committed_at": now, "checked_at": now}


def _upsert(connection: Connection) -> Any:
    """One statement that counts by itself, so that two writers of one partition lose nothing."""
    statement = insert_into(partition_record, connection)
    old, new = partition_record.c, statement.excluded
    same: ColumnElement[bool] = and_(old.rows == new.rows, old.digest == new.digest)
    snapshot = func.coalesce(new.snapshot_id, old.snapshot_id)
    upsert = statement.on_conflict_do_update(
        index_elements=[old.table_name, old.partition],
        set_={
            "rows": new.rows,
            "digest": new.digest,
            # The same content again needs no commit and then has no snapshot of its own.
            "snapshot_id": case((same, snapshot), else_=new.snapshot_id),
            "inputs": new.inputs,
            "detail": new.detail,
            "run_id": new.run_id,
            "seen_count": case((same, old.seen_count + 1), else_=1),
            "generation": case((same, old.generation), else_=old.generation + 1),
            "committed_at": case((same, old.committed_at), else_=new.committed_at),
            "checked_at": new.checked_at,
        },
    )
    # psycopg2 sends rows one by one unless something is returned: 30,000 rows took 3.5 s, now 2.4 s.
    return upsert.returning(old.partition) if connection.dialect.name == "postgresql" else upsert


def _revision(
    old: PartitionRecord, new: PartitionRecord, now: datetime, parent_snapshot_id: int | None
) -> dict[str, Any]:
    return {
        "table_name": new.table_name,
        "partition": new.partition,
        "generation": old.generation + 1,
        "old_rows": old.rows,
        "old_digest": old.digest,
        "new_rows": new.rows,
        "new_digest": new.digest,
        "old_snapshot_id": parent_snapshot_id or old.snapshot_id,
        "new_snapshot_id": new.snapshot_id,
        "seen_at": now,
        "recorded": False,
    }
