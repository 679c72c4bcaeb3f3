"""Inbox files need no table of their own; an upload says when its file was written."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")
KIND = "carbon.file_ingest"


def upgrade() -> None:
    op.drop_table("dropped_file")
    op.add_column("upload", sa.Column("modified_at", sa.DateTime(timezone=True)))
    _rename_keys("dropped_files:", "inbox_files:")


def downgrade() -> None:
    _rename_keys("inbox_files:", "dropped_files:")
    op.drop_column("upload", "modified_at")
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
    unique = sa.text("finished_at IS NULL")
    op.create_index(
        "uq_dropped_file_open",
        "dropped_file",
        ["key"],
        unique=True,
        sqlite_where=unique,
        postgresql_where=unique,
    )
    op.create_index("ix_dropped_file_key_id", "dropped_file", ["key", "id"])
    op.create_index("ix_dropped_file_upload_id", "dropped_file", ["upload_id"])
    op.create_index("ix_dropped_file_moved_at", "dropped_file", ["moved_at"])


def _rename_keys(old: str, new: str) -> None:
    work = sa.table("work", sa.column("kind", sa.String), sa.column("key", sa.String))
    renamed = sa.literal(new) + sa.func.substr(work.c.key, len(old) + 1)
    op.execute(work.update().where(work.c.kind == KIND, work.c.key.startswith(old)).values(key=renamed))
