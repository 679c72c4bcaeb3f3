"""The status `superseded`, columns and tables in plain words, and an index that serves backlogs too."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

OLD = "'queued', 'deferred', 'running', 'completed', 'failed', 'skipped', 'cancelled'"
OLD_CHECK, NEW_CHECK = f"status IN ({OLD})", f"status IN ({OLD}, 'superseded')"
NOT_NEEDED = "('superseded', 'done_meanwhile', 'outside_window')"
COLUMNS = (
    ("work", "strikes", "crash_count"),
    ("work", "repeats", "recurrence"),
    ("feed_place", "heard_at", "reported_at"),
)
TABLES = (("partition_fact", "partition_record"), ("feed_place", "feed_content"))
REASONS = (("asked_for", "requested"),)
WAITING = "status IN ('queued', 'deferred')"
WORK_INDEXES = (
    f"CREATE UNIQUE INDEX uq_work_waiting ON work (kind, key) WHERE {WAITING}",
    "CREATE UNIQUE INDEX uq_work_running ON work (kind, key) WHERE status = 'running'",
    "CREATE INDEX ix_work_kind_key_id ON work (kind, key, id)",
    f"CREATE INDEX ix_work_due ON work (kind, tenant, priority DESC, id) WHERE {WAITING}",
    "CREATE INDEX ix_work_finished_at ON work (finished_at) WHERE finished_at IS NOT NULL",
    "CREATE INDEX ix_work_unfinished ON work (kind, status, id) WHERE finished_at IS NULL",
)
"""Those that go with the table when it is built anew."""


def upgrade() -> None:
    _replace_check(OLD_CHECK, NEW_CHECK)
    op.execute(
        f"UPDATE work SET status = 'superseded' WHERE status = 'cancelled' AND reason_code IN {NOT_NEEDED}"
    )
    for table, old, new in COLUMNS:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    for old, new in TABLES:
        _rename_table(old, new)
    for old, new in REASONS:
        _rename_reason(old, new)
    _replace_due_index("not_before", "created_at")


def downgrade() -> None:
    _replace_due_index()
    for old, new in REASONS:
        _rename_reason(new, old)
    for old, new in TABLES:
        _rename_table(new, old)
    for table, old, new in COLUMNS:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {new} TO {old}")
    op.execute(
        "UPDATE work SET status = 'cancelled', reason_code = "
        f"CASE WHEN reason_code IN {NOT_NEEDED} THEN reason_code ELSE 'superseded' END "
        "WHERE status = 'superseded'"
    )
    _replace_check(NEW_CHECK, OLD_CHECK)


def _replace_due_index(*more: str) -> None:
    """With more columns `backlog` reads nothing but the index."""
    op.drop_index("ix_work_due", "work")
    columns: list[Any] = ["kind", "tenant", sa.text("priority DESC"), "id", *more]
    where = sa.text(WAITING)
    op.create_index("ix_work_due", "work", columns, sqlite_where=where, postgresql_where=where)


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def _rename_table(old: str, new: str) -> None:
    if _is_sqlite():
        # A constraint's name is in the table's definition only, so the table is built anew.
        _rebuild(old, new, _definition(old).replace(old, new))
    else:
        op.rename_table(old, new)
        op.execute(f"ALTER TABLE {new} RENAME CONSTRAINT pk_{old} TO pk_{new}")


def _rename_reason(old: str, new: str) -> None:
    for table in ("work", "work_event"):
        op.execute(f"UPDATE {table} SET reason_code = '{new}' WHERE reason_code = '{old}'")


def _replace_check(old: str, new: str) -> None:
    if not _is_sqlite():
        op.drop_constraint("ck_work_status", "work")
        op.create_check_constraint(op.f("ck_work_status"), "work", new)
        return
    _rebuild("work", "rebuilt", _definition("work").replace(old, new))
    op.execute("ALTER TABLE rebuilt RENAME TO work")
    for index in WORK_INDEXES:
        op.execute(index)


def _definition(table: str) -> str:
    query = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :name")
    return str(op.get_bind().execute(query, {"name": table}).scalar_one())


def _rebuild(table: str, new: str, definition: str) -> None:
    """The way that SQLite's documentation describes; `migrate` has switched foreign keys off.

    The counter goes along: an id that was given once is never given again, even if its row was deleted.
    """
    op.execute(f"CREATE TABLE {new} ({definition.split('(', 1)[1]}")
    op.execute(f"INSERT INTO {new} SELECT * FROM {table}")
    if "AUTOINCREMENT" in definition:
        op.execute(f"DELETE FROM sqlite_sequence WHERE name = '{new}'")
        op.execute(
            f"INSERT INTO sqlite_sequence SELECT '{new}', seq FROM sqlite_sequence WHERE name = '{table}'"
        )
    op.execute(f"DROP TABLE {table}")
