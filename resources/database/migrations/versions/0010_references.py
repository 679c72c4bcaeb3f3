"""Scrape runs, and where the next scrape of a source goes on."""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), "0010_up")


def downgrade() -> None:
    run_script(op.get_bind(), "0010_down")
