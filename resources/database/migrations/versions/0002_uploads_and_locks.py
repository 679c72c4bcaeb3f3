"""Files that people uploaded, and years that are locked because their report was published."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
JSON = sa.JSON().with_variant(JSONB, "postgresql")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "upload",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("topic", sa.String, nullable=False),
        sa.Column("institution", sa.String, nullable=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("sha256", sa.String, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("taken", sa.BigInteger, nullable=False),
        sa.Column("problem_count", sa.BigInteger, nullable=False),
        sa.Column("problems", JSON, nullable=False),
        sa.Column("warnings", JSON, nullable=False),
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.Column("uploaded_by", sa.String, nullable=False),
        sa.Column("uploaded_at", MOMENT, nullable=False),
        sa.Column("pipeline_id", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_upload"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_upload_pipeline_id", "upload", ["pipeline_id"])
    op.create_table(
        "upload_year",
        sa.Column("upload_id", BIG_ID, nullable=False),
        sa.Column("year", sa.Integer, nullable=False),
        sa.Column("work_id", sa.BigInteger),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["upload.id"], name="fk_upload_year_upload_id_upload", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("upload_id", "year", name="pk_upload_year"),
    )
    op.create_table(
        "year_lock",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("year", sa.Integer, nullable=False),
        sa.Column("locked_at", MOMENT, nullable=False),
        sa.Column("locked_by", sa.String, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("unlocked_at", MOMENT),
        sa.Column("unlocked_by", sa.String),
        sa.Column("unlock_reason", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_year_lock"),
        sqlite_autoincrement=True,
    )
    held = sa.text("unlocked_at IS NULL")
    op.create_index(
        "uq_year_lock_held", "year_lock", ["year"], unique=True, sqlite_where=held, postgresql_where=held
    )


def downgrade() -> None:
    for table in ("year_lock", "upload_year", "upload"):
        op.drop_table(table)
