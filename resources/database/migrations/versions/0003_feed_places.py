"""What applications beside us say they hold; uploads are found by their place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_upload_place", "upload", ["accepted", "kind", "topic", "institution", "source", "id"])
    op.create_table(
        "feed_place",
        sa.Column("source", sa.String, nullable=False),
        sa.Column("institution", sa.String, nullable=False),
        sa.Column("topic", sa.String, nullable=False),
        sa.Column("year", sa.Integer, nullable=False),
        sa.Column("version", sa.String, nullable=False),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("source", "institution", "topic", "year", name="pk_feed_place"),
    )


def downgrade() -> None:
    op.drop_table("feed_place")
    op.drop_index("ix_upload_place", "upload")
