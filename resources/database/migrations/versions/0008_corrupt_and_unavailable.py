"""Reason codes say corrupt and unavailable."""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), "0008_up")


def downgrade() -> None:
    run_script(op.get_bind(), "0008_down")
