"""What became of each dropped file: its upload, and where it was moved to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "dropped_file",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("stamp", sa.String, nullable=False),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("uploads_before", sa.BigInteger, nullable=False),
        sa.Column("upload_id", sa.BigInteger),
        sa.Column("moved_to", sa.String),
        sa.Column("moved_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_dropped_file"),
        sqlite_autoincrement=True,
    )
    lies = sa.text("finished_at IS NULL")
    op.create_index(
        "uq_dropped_file_open", "dropped_file", ["key"], unique=True, sqlite_where=lies, postgresql_where=lies
    )
    op.create_index("ix_dropped_file_key_id", "dropped_file", ["key", "id"])
    op.create_index("ix_dropped_file_upload_id", "dropped_file", ["upload_id"])
    op.create_index("ix_dropped_file_moved_at", "dropped_file", ["moved_at"])


def downgrade() -> None:
    op.drop_table("dropped_file")
