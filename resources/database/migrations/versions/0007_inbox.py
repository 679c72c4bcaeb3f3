"""Inbox files need no table of their own; an upload says when its file was written."""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), "0007_up")


def downgrade() -> None:
    run_script(op.get_bind(), "0007_down")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER INDEX dropped_file_pkey RENAME TO pk_dropped_file")
