"""The ledger's tables. Nothing here connects."""

from __future__ import annotations

import sqlalchemy as sa

from domain.shared.work import CANCELLED, FAILED, RUNNING, STATUSES, WAITING
from resources.database.schema import BigId, Json, UtcDateTime, listed, metadata, partial

work = sa.Table(
    "work",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("key", sa.String, nullable=False),
    sa.Column("fingerprint", sa.String, nullable=False),
    sa.Column("params", Json, nullable=False),
    sa.Column("tenant", sa.String, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("once", sa.Boolean, nullable=False),
    # No foreign key: retention may take the parent first, and the number still names it.
    sa.Column("parent_id", sa.BigInteger),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("reason_code", sa.String, nullable=False),
    sa.Column("error_kind", sa.String),
    sa.Column("error", sa.Text),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("crash_count", sa.Integer, nullable=False),
    sa.Column("max_attempts", sa.Integer),
    sa.Column("dispatches", sa.Integer, nullable=False),
    sa.Column("dispatch_id", sa.String),
    sa.Column("recurrence", sa.Integer, nullable=False),
    sa.Column("not_before", UtcDateTime, nullable=False),
    sa.Column("run_id", sa.String),
    sa.Column("lease_until", UtcDateTime),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("started_at", UtcDateTime),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("deaths", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("not_before_fixed", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.CheckConstraint(f"status IN ({listed(STATUSES)})", name="status"),
    # People quote these ids: a purged one must not come back as something else.
    sqlite_autoincrement=True,
)
REFUSED = (FAILED, CANCELLED)
sa.Index("uq_work_waiting", work.c.kind, work.c.key, unique=True, **partial(f"status IN ({listed(WAITING)})"))
sa.Index("uq_work_running", work.c.kind, work.c.key, unique=True, **partial("status = 'running'"))
sa.Index("ix_work_kind_key_id", work.c.kind, work.c.key, work.c.id)
sa.Index(
    "ix_work_due",
    work.c.kind,
    work.c.tenant,
    work.c.priority.desc(),
    work.c.id,
    work.c.not_before,  # these two for `backlog`, which then reads no rows
    work.c.created_at,
    **partial(f"status IN ({listed(WAITING)})"),
)
sa.Index("ix_work_finished_at", work.c.finished_at, **partial("finished_at IS NOT NULL"))
sa.Index(
    "ix_work_unfinished", work.c.kind, work.c.status, work.c.id, **partial("finished_at IS NULL")
)  # every pass reads what is unfinished; what is finished grows with the years
sa.Index("ix_work_refused", work.c.kind, work.c.id, **partial(f"status IN ({listed(REFUSED)})"))


def is_waiting(rows: sa.FromClause = work) -> sa.ColumnElement[bool]:
    """The condition of the partial index, literally: SQLite matches no bound values."""
    return rows.c.status.in_([sa.literal_column(f"'{status}'") for status in WAITING])


def is_running(rows: sa.FromClause = work) -> sa.ColumnElement[bool]:
    return rows.c.status == sa.literal_column(f"'{RUNNING}'")


def is_refused() -> sa.ColumnElement[bool]:
    """The condition of the index of work that failed or was cancelled."""
    return work.c.status.in_([sa.literal_column(f"'{status}'") for status in REFUSED])


def is_running_now() -> sa.ColumnElement[bool]:
    """The same as the condition of the index of unfinished rows, for queries that name no key."""
    return sa.and_(is_running(), work.c.finished_at.is_(None))


work_event = sa.Table(
    "work_event",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("work_id", BigId, sa.ForeignKey("work.id", ondelete="CASCADE"), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("event", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("run_id", sa.String),
    sa.Column("reason_code", sa.String, nullable=False),
    sa.Column("error_kind", sa.String),
    sa.Column("error", sa.Text),
    sqlite_autoincrement=True,
)
sa.Index("ix_work_event_work_id_id", work_event.c.work_id, work_event.c.id)

pipeline_member = sa.Table(
    "pipeline_member",
    metadata,
    sa.Column("pipeline_id", sa.String, primary_key=True),
    sa.Column("work_id", BigId, sa.ForeignKey("work.id", ondelete="CASCADE"), primary_key=True),
)
sa.Index("ix_pipeline_member_work_id", pipeline_member.c.work_id)

partition_record = sa.Table(
    "partition_record",
    metadata,
    sa.Column("table_name", sa.String, primary_key=True),
    sa.Column("partition", sa.String, primary_key=True),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String, nullable=False),
    sa.Column("snapshot_id", sa.BigInteger),
    sa.Column("inputs", Json, nullable=False),
    sa.Column("detail", Json, nullable=False),
    sa.Column("seen_count", sa.Integer, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("committed_at", UtcDateTime, nullable=False),
    sa.Column("checked_at", UtcDateTime, nullable=False),
    sa.Column("run_id", sa.String, nullable=False),
)

partition_revision = sa.Table(
    "partition_revision",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("table_name", sa.String, nullable=False),
    sa.Column("partition", sa.String, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("old_rows", sa.BigInteger, nullable=False),
    sa.Column("old_digest", sa.String, nullable=False),
    sa.Column("new_rows", sa.BigInteger, nullable=False),
    sa.Column("new_digest", sa.String, nullable=False),
    sa.Column("old_snapshot_id", sa.BigInteger),
    sa.Column("new_snapshot_id", sa.BigInteger),
    sa.Column("seen_at", UtcDateTime, nullable=False),
    sa.Column("recorded", sa.Boolean, nullable=False),
    sqlite_autoincrement=True,
)
sa.Index(
    "uq_partition_revision_generation",
    partition_revision.c.table_name,
    partition_revision.c.partition,
    partition_revision.c.generation,
    unique=True,
)
sa.Index(
    "ix_partition_revision_pending",
    partition_revision.c.id,
    sqlite_where=sa.text("recorded IS 0"),
    postgresql_where=sa.text("recorded IS false"),
)

source_freshness = sa.Table(
    "source_freshness",
    metadata,
    sa.Column("source", sa.String, primary_key=True),
    sa.Column("last_success", UtcDateTime),
    sa.Column("last_failure", UtcDateTime),
    sa.Column("last_error", sa.Text),
    sa.Column("rows_today", sa.BigInteger),
    sa.Column("rows_latest", sa.BigInteger),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

setting = sa.Table(
    "setting",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
