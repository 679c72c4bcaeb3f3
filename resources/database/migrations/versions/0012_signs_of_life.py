"""An index of cancelled work beside failed, and when a scrape showed a sign of life last."""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), "0012_up")


def downgrade() -> None:
    run_script(op.get_bind(), "0012_down")
