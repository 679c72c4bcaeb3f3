"""Alembic's entry: migrations run on the connection, and in the transaction, that `migrate.py` opened."""

from __future__ import annotations

from alembic import context

from resources.database.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
context.run_migrations()
