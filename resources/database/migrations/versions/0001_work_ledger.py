"""The work ledger and its neighbours: intent, provenance, freshness, pace, settings.

A migration is history: it repeats the columns as they were then and imports nothing that may change.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
JSON = sa.JSON().with_variant(JSONB, "postgresql")
MOMENT = sa.DateTime(timezone=True)
WAITING = "status IN ('queued', 'deferred')"
STATUSES = "'queued', 'deferred', 'running', 'completed', 'failed', 'skipped', 'cancelled'"


def _index(
    name: str, table: str, columns: list[Any], where: str | None = None, *, unique: bool = False
) -> None:
    condition = sa.text(where) if where else None
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def upgrade() -> None:
    _create_work()
    _create_provenance()
    op.create_table(
        "source_freshness",
        sa.Column("source", sa.String, nullable=False),
        sa.Column("last_success", MOMENT),
        sa.Column("last_failure", MOMENT),
        sa.Column("last_error", sa.Text),
        sa.Column("rows_today", sa.BigInteger),
        sa.Column("rows_latest", sa.BigInteger),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("source", name="pk_source_freshness"),
    )
    op.create_table(
        "pace",
        sa.Column("source", sa.String, nullable=False),
        sa.Column("window_start", MOMENT, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("source", "window_start", name="pk_pace"),
    )
    op.create_table(
        "setting",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_setting"),
    )


def _create_work() -> None:
    op.create_table(
        "work",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("params", JSON, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("once", sa.Boolean, nullable=False),
        sa.Column("parent_id", sa.BigInteger),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("reason_code", sa.String, nullable=False),
        sa.Column("error_kind", sa.String),
        sa.Column("error", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("strikes", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer),
        sa.Column("dispatches", sa.Integer, nullable=False),
        sa.Column("dispatch_id", sa.String),
        sa.Column("repeats", sa.Integer, nullable=False),
        sa.Column("not_before", MOMENT, nullable=False),
        sa.Column("run_id", sa.String),
        sa.Column("lease_until", MOMENT),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
        sa.CheckConstraint(f"status IN ({STATUSES})", name=op.f("ck_work_status")),
        sa.PrimaryKeyConstraint("id", name="pk_work"),
        sqlite_autoincrement=True,
    )
    _index("uq_work_waiting", "work", ["kind", "key"], WAITING, unique=True)
    _index("uq_work_running", "work", ["kind", "key"], "status = 'running'", unique=True)
    _index("ix_work_kind_key_id", "work", ["kind", "key", "id"])
    _index("ix_work_due", "work", ["kind", "tenant", sa.text("priority DESC"), "id"], WAITING)
    _index("ix_work_finished_at", "work", ["finished_at"], "finished_at IS NOT NULL")
    op.create_table(
        "work_event",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("work_id", BIG_ID, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("run_id", sa.String),
        sa.Column("reason_code", sa.String, nullable=False),
        sa.Column("error_kind", sa.String),
        sa.Column("error", sa.Text),
        sa.ForeignKeyConstraint(
            ["work_id"], ["work.id"], name="fk_work_event_work_id_work", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_work_event"),
        sqlite_autoincrement=True,
    )
    _index("ix_work_event_work_id_id", "work_event", ["work_id", "id"])
    op.create_table(
        "pipeline_member",
        sa.Column("pipeline_id", sa.String, nullable=False),
        sa.Column("work_id", BIG_ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["work_id"], ["work.id"], name="fk_pipeline_member_work_id_work", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("pipeline_id", "work_id", name="pk_pipeline_member"),
    )
    _index("ix_pipeline_member_work_id", "pipeline_member", ["work_id"])


def _create_provenance() -> None:
    op.create_table(
        "partition_fact",
        sa.Column("table_name", sa.String, nullable=False),
        sa.Column("partition", sa.String, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("snapshot_id", sa.BigInteger),
        sa.Column("inputs", JSON, nullable=False),
        sa.Column("detail", JSON, nullable=False),
        sa.Column("seen_count", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("committed_at", MOMENT, nullable=False),
        sa.Column("checked_at", MOMENT, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("table_name", "partition", name="pk_partition_fact"),
    )
    op.create_table(
        "partition_revision",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("table_name", sa.String, nullable=False),
        sa.Column("partition", sa.String, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("old_rows", sa.BigInteger, nullable=False),
        sa.Column("old_digest", sa.String, nullable=False),
        sa.Column("new_rows", sa.BigInteger, nullable=False),
        sa.Column("new_digest", sa.String, nullable=False),
        sa.Column("old_snapshot_id", sa.BigInteger),
        sa.Column("new_snapshot_id", sa.BigInteger),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("recorded", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_partition_revision"),
        sqlite_autoincrement=True,
    )
    _index(
        "uq_partition_revision_generation",
        "partition_revision",
        ["table_name", "partition", "generation"],
        unique=True,
    )


def downgrade() -> None:
    for table in (
        "setting",
        "pace",
        "source_freshness",
        "partition_revision",
        "partition_fact",
        "pipeline_member",
        "work_event",
        "work",
    ):
        op.drop_table(table)
