"""The whole schema as it was at 0005: no home in use is older.

A migration is history: its SQL repeats the columns as they were then and imports nothing that may change.
"""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "0005"
down_revision = None
branch_labels = None
depends_on = None

COUNTED = ("work", "work_event", "partition_revision", "upload", "year_lock", "dropped_file")


def upgrade() -> None:
    run_script(op.get_bind(), "0005_up")
    if op.get_bind().dialect.name == "postgresql":
        for table in COUNTED:
            op.execute(f"ALTER INDEX {table}_pkey RENAME TO pk_{table}")


def downgrade() -> None:
    run_script(op.get_bind(), "0005_down")
