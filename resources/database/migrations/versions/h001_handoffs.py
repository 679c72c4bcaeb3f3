"""The history of hand-offs: a branch of its own, which may be taken away and brought back."""

from __future__ import annotations

from alembic import op

from resources.database.statements import run_script

revision = "h001"
down_revision = None
branch_labels = ("handoffs",)
depends_on = None

# Not in the SQL files, which are split at every semicolon.
TOUCHED = """
CREATE FUNCTION ingestion_handoffs_touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at = clock_timestamp();
    RETURN NEW;
END $$
"""
TRIGGER = """
CREATE TRIGGER ingestion_handoffs_touched BEFORE UPDATE ON ingestion_handoffs
FOR EACH ROW EXECUTE FUNCTION ingestion_handoffs_touched()
"""

# Work is named by the ids of hand-offs, and stays when they are taken away: no id is given twice.
LAST = "SELECT max(CAST(substr(key, 10) AS BIGINT)) FROM work WHERE kind = 'references.handoff'"
GO_ON = {
    "sqlite": "INSERT INTO sqlite_sequence (name, seq) VALUES ('ingestion_handoffs', {last})",
    "postgresql": "SELECT setval(pg_get_serial_sequence('ingestion_handoffs', 'id'), {last})",
}


def upgrade() -> None:
    connection = op.get_bind()
    run_script(connection, "h001_up")
    if last := connection.exec_driver_sql(LAST).scalar():
        connection.exec_driver_sql(GO_ON[connection.dialect.name].format(last=int(last)))
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ALTER INDEX ingestion_handoffs_pkey RENAME TO pk_ingestion_handoffs")
        connection.exec_driver_sql(TOUCHED)
        connection.exec_driver_sql(TRIGGER)


def downgrade() -> None:
    connection = op.get_bind()
    run_script(connection, "h001_down")
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("DROP FUNCTION ingestion_handoffs_touched()")
