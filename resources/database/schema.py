"""The one metadata, and the column types its tables share. Nothing here connects.

The tables themselves stand with the code that uses them (`resources/ledger/schema.py`, a domain's
`store.py`); `migrations/` is how a database gets there, and a test holds the two together. `HEAD` names the
newest migration, so that a reader learns whether the schema fits without importing Alembic.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Integer,
    MetaData,
    TypeDecorator,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

HEAD = "0012"
BRANCHES = {"handoffs": "h001"}
"""The optional branches of the schema, each with its newest migration. A person may take one away."""
VERSION_TABLE = "ledger_version"
"""Not Alembic's default name: Dagster keeps its own `alembic_version`, often in the same database."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment in UTC on every database. SQLite forgets time zones silently; this one does not."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite counts only an INTEGER key by itself; elsewhere ids outgrow 32 bits.
BigId = BigInteger().with_variant(Integer, "sqlite")
Json = JSON().with_variant(JSONB, "postgresql")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def listed(values: Iterable[str]) -> str:
    """The values as an SQL list of literals."""
    return ", ".join(f"'{value}'" for value in values)


def partial(condition: str) -> dict[str, Any]:
    """The arguments of an index over the rows that fulfil a condition."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}
