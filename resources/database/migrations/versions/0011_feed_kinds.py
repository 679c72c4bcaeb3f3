"""Feeds report units and factors beside entries."""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), "0011_up")


def downgrade() -> None:
    run_script(op.get_bind(), "0011_down")
