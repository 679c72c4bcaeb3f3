"""Deaths of holders are counted apart from failures, and a wait says whether its moment is fixed."""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), "0009_up")


def downgrade() -> None:
    run_script(op.get_bind(), "0009_down")
