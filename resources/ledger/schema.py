"""The ledger's tables. Nothing here connects."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    String,
    Table,
    Text,
    and_,
    literal_column,
    text,
)

from resources.database.schema import BigId, Json, UtcDateTime, listed, metadata, partial

QUEUED = "queued"
RUNNING = "running"
DEFERRED = "deferred"
COMPLETED = "completed"
FAILED = "failed"
SKIPPED = "skipped"
CANCELLED = "cancelled"
SUPERSEDED = "superseded"

WAITING = (QUEUED, DEFERRED)
ACTIVE = (*WAITING, RUNNING)
FINISHED = (COMPLETED, FAILED, SKIPPED, CANCELLED, SUPERSEDED)
STATUSES = (*ACTIVE, *FINISHED)


work = Table(
    "work",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("kind", String, nullable=False),
    Column("key", String, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("params", Json, nullable=False),
    Column("tenant", String, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("once", Boolean, nullable=False),
    # No foreign key: retention may take the parent first, and the number still tells the story.
    Column("parent_id", BigInteger),
    Column("status", String, nullable=False),
    Column("reason_code", String, nullable=False),
    Column("error_kind", String),
    Column("error", Text),
    Column("attempts", Integer, nullable=False),
    Column("crash_count", Integer, nullable=False),
    Column("max_attempts", Integer),
    Column("dispatches", Integer, nullable=False),
    Column("dispatch_id", String),
    Column("recurrence", Integer, nullable=False),
    Column("not_before", UtcDateTime, nullable=False),
    Column("run_id", String),
    Column("lease_until", UtcDateTime),
    Column("fence", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    CheckConstraint(f"status IN ({listed(STATUSES)})", name="status"),
    # People quote these ids: a purged one must not come back as something else.
    sqlite_autoincrement=True,
)
Index("uq_work_waiting", work.c.kind, work.c.key, unique=True, **partial(f"status IN ({listed(WAITING)})"))
Index("uq_work_running", work.c.kind, work.c.key, unique=True, **partial("status = 'running'"))
Index("ix_work_kind_key_id", work.c.kind, work.c.key, work.c.id)
Index(
    "ix_work_due",
    work.c.kind,
    work.c.tenant,
    work.c.priority.desc(),
    work.c.id,
    work.c.not_before,  # these two for `backlog`, which then reads no rows
    work.c.created_at,
    **partial(f"status IN ({listed(WAITING)})"),
)
Index("ix_work_finished_at", work.c.finished_at, **partial("finished_at IS NOT NULL"))
Index(
    "ix_work_unfinished", work.c.kind, work.c.status, work.c.id, **partial("finished_at IS NULL")
)  # every pass reads what is unfinished; what is finished grows with the years


def is_waiting(rows: FromClause = work) -> ColumnElement[bool]:
    """The words of the partial index: with bound values SQLite could not tell that it fits."""
    return rows.c.status.in_([literal_column(f"'{word}'") for word in WAITING])


def is_running(rows: FromClause = work) -> ColumnElement[bool]:
    return rows.c.status == literal_column(f"'{RUNNING}'")


def is_running_now() -> ColumnElement[bool]:
    """The same in the words of the index of unfinished rows, for queries that name no key."""
    return and_(is_running(), work.c.finished_at.is_(None))


work_event = Table(
    "work_event",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("work_id", BigId, ForeignKey("work.id", ondelete="CASCADE"), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("event", String, nullable=False),
    Column("status", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("run_id", String),
    Column("reason_code", String, nullable=False),
    Column("error_kind", String),
    Column("error", Text),
    sqlite_autoincrement=True,
)
Index("ix_work_event_work_id_id", work_event.c.work_id, work_event.c.id)

pipeline_member = Table(
    "pipeline_member",
    metadata,
    Column("pipeline_id", String, primary_key=True),
    Column("work_id", BigId, ForeignKey("work.id", ondelete="CASCADE"), primary_key=True),
)
Index("ix_pipeline_member_work_id", pipeline_member.c.work_id)

partition_record = Table(
    "partition_record",
    metadata,
    Column("table_name", String, primary_key=True),
    Column("partition", String, primary_key=True),
    Column("rows", BigInteger, nullable=False),
    Column("digest", String, nullable=False),
    Column("snapshot_id", BigInteger),
    Column("inputs", Json, nullable=False),
    Column("detail", Json, nullable=False),
    Column("seen_count", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("committed_at", UtcDateTime, nullable=False),
    Column("checked_at", UtcDateTime, nullable=False),
    Column("run_id", String, nullable=False),
)

partition_revision = Table(
    "partition_revision",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("table_name", String, nullable=False),
    Column("partition", String, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("old_rows", BigInteger, nullable=False),
    Column("old_digest", String, nullable=False),
    Column("new_rows", BigInteger, nullable=False),
    Column("new_digest", String, nullable=False),
    Column("old_snapshot_id", BigInteger),
    Column("new_snapshot_id", BigInteger),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("recorded", Boolean, nullable=False),
    sqlite_autoincrement=True,
)
Index(
    "uq_partition_revision_generation",
    partition_revision.c.table_name,
    partition_revision.c.partition,
    partition_revision.c.generation,
    unique=True,
)
Index(
    "ix_partition_revision_pending",
    partition_revision.c.id,
    sqlite_where=text("recorded IS 0"),
    postgresql_where=text("recorded IS false"),
)

source_freshness = Table(
    "source_freshness",
    metadata,
    Column("source", String, primary_key=True),
    Column("last_success", UtcDateTime),
    Column("last_failure", UtcDateTime),
    Column("last_error", Text),
    Column("rows_today", BigInteger),
    Column("rows_latest", BigInteger),
    Column("updated_at", UtcDateTime, nullable=False),
)

setting = Table(
    "setting",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", Text, nullable=False),
)

VIEWS = {
    "ops.work": work,
    "ops.work_event": work_event,
    "ops.partition_record": partition_record,
    "ops.pipeline_member": pipeline_member,
}
"""The tables that SQL users see, by name."""
