"""The status `superseded`, columns and tables in plain words, and an index that serves backlogs too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from resources.database.statements import run_script

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

OLD = "'queued', 'deferred', 'running', 'completed', 'failed', 'skipped', 'cancelled'"
OLD_CHECK, NEW_CHECK = f"status IN ({OLD})", f"status IN ({OLD}, 'superseded')"
TABLES = (("partition_fact", "partition_record"), ("feed_place", "feed_content"))


def upgrade() -> None:
    _replace_check(OLD_CHECK, NEW_CHECK)
    run_script(op.get_bind(), "0006_up")
    for old, new in TABLES:
        _rename_table(old, new)


def downgrade() -> None:
    for old, new in TABLES:
        _rename_table(new, old)
    run_script(op.get_bind(), "0006_down")
    _replace_check(NEW_CHECK, OLD_CHECK)


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def _rename_table(old: str, new: str) -> None:
    if _is_sqlite():
        # A constraint's name is in the table's definition only, so the table is built anew.
        _rebuild(old, new, old, new)
    else:
        op.rename_table(old, new)
        op.execute(f"ALTER TABLE {new} RENAME CONSTRAINT pk_{old} TO pk_{new}")


def _replace_check(old: str, new: str) -> None:
    if _is_sqlite():
        indexes = op.get_bind().execute(
            sa.text("SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'work' AND sql <> ''")
        )
        definitions = list(indexes.scalars())
        _rebuild("work", "rebuilt", old, new)
        op.execute("ALTER TABLE rebuilt RENAME TO work")
        for definition in definitions:
            op.execute(definition)
    else:
        op.drop_constraint("ck_work_status", "work")
        op.create_check_constraint(op.f("ck_work_status"), "work", new)


def _rebuild(table: str, new_table: str, old: str, new: str) -> None:
    """The way that SQLite's documentation describes; `migrate` has switched foreign keys off.

    The counter goes along: an id that was given once is never given again, even if its row was deleted.
    """
    query = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :name")
    definition = str(op.get_bind().execute(query, {"name": table}).scalar_one()).replace(old, new)
    op.execute(f"CREATE TABLE {new_table} ({definition.split('(', 1)[1]}")
    op.execute(f"INSERT INTO {new_table} SELECT * FROM {table}")
    if "AUTOINCREMENT" in definition:
        op.execute(f"DELETE FROM sqlite_sequence WHERE name = '{new_table}'")
        counter = f"SELECT '{new_table}', seq FROM sqlite_sequence WHERE name = '{table}'"
        op.execute(f"INSERT INTO sqlite_sequence {counter}")
    op.execute(f"DROP TABLE {table}")
