"""An INSERT that knows what to do where a row is already: each database speaks it in a dialect of its own."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_into(table: Table, on: Engine | Connection) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if on.dialect.name == "postgresql" else sqlite.insert(table)
