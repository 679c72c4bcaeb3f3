"""What is not finished, and revisions that wait to be told, found without reading all that ever was."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    unfinished = sa.text("finished_at IS NULL")
    op.create_index(
        "ix_work_unfinished",
        "work",
        ["kind", "status", "id"],
        sqlite_where=unfinished,
        postgresql_where=unfinished,
    )
    op.create_index(
        "ix_partition_revision_pending",
        "partition_revision",
        ["id"],
        sqlite_where=sa.text("recorded IS 0"),
        postgresql_where=sa.text("recorded IS false"),
    )


def downgrade() -> None:
    op.drop_index("ix_partition_revision_pending", "partition_revision")
    op.drop_index("ix_work_unfinished", "work")
