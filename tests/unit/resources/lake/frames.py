"""Small tables of every kind, frames for them, and a lake to put them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from domain.shared.table import Column, Table, Version
from resources.lake.client import Lake
from resources.lake.content_hash import versions_of

Lakes = Callable[..., Lake]

CODES = ("000001.SZ", "000002.SZ", "600000.SH", "688001.SH")

DAILY = Table(
    name="market.prices",
    description="Prices by day.",
    columns=(
        Column("trade_date", pa.date32(), "day", nullable=False),
        Column("ts_code", pa.string(), "stock", nullable=False),
        Column("close", pa.float64(), "close", unit="CNY"),
        Column("volume", pa.int64(), "volume", unit="shares"),
    ),
    key=("trade_date", "ts_code"),
    partition_kind="day",
    partition_columns=("trade_date",),
)
YEARLY = Table(
    name="carbon.factors",
    description="Factors by year.",
    columns=(
        Column("year", pa.int32(), "year", nullable=False),
        Column("name", pa.string(), "name", nullable=False),
        Column("factor", pa.decimal128(12, 4), "factor"),
    ),
    key=("year", "name"),
    partition_kind="year",
    partition_columns=("year",),
)
BY_KIND = Table(
    name="refs.papers",
    description="Papers by kind.",
    columns=(
        Column("id", pa.int64(), "id", nullable=False),
        Column("kind", pa.string(), "kind", nullable=False),
        Column("title", pa.string(), "title"),
        Column("seen", pa.timestamp("us", tz="UTC"), "when"),
        Column("body", pa.binary(), "bytes"),
        Column("open", pa.bool_(), "open"),
    ),
    key=("kind", "id"),
    partition_kind="category",
    partition_columns=("kind",),
)
WHOLE = Table(
    name="market.stocks",
    description="All stocks.",
    columns=(
        Column("ts_code", pa.string(), "stock", nullable=False),
        Column("name", pa.string(), "name"),
    ),
    key=("ts_code",),
)
BY_KIND_AND_YEAR = Table(
    name="carbon.entries",
    description="Amounts by kind and year.",
    columns=(
        Column("year", pa.int32(), "year", nullable=False),
        Column("kind", pa.string(), "kind", nullable=False),
        Column("id", pa.int64(), "id", nullable=False),
        Column("amount", pa.float64(), "amount", unit="kg"),
    ),
    key=("kind", "year", "id"),
    partition_kind="category_year",
    partition_columns=("kind", "year"),
)
TABLES = (DAILY, YEARLY, BY_KIND, WHOLE, BY_KIND_AND_YEAR)


def on_files(folder: Path, tables: Sequence[Table] = TABLES, **settings: Any) -> Lake:
    """The embedded lake below a folder, as the product lays it out."""
    given = {
        "catalog_url": f"sqlite:///{folder}/lake/catalog.db",
        "warehouse": f"file://{folder}/lake/warehouse",
        "home": folder,
        "tables": tables,
    }
    return Lake(**(given | settings))


def rows_of(lake: Lake, table: str, as_of: int | None = None) -> pa.Table:
    """All rows of a table, now or in an earlier snapshot."""
    rows = lake.query(f"SELECT * FROM {table}", as_of=None if as_of is None else {table: as_of})
    return rows.cast(lake.tables[table].schema)


def version_of(table: Table, frame: pa.Table) -> Version:
    """The version that a partition with these rows has."""
    [version] = versions_of(table, [frame]).values()
    return version


def prices(*days: str, scale: float = 1.0, codes: Sequence[str] = CODES) -> pa.Table:
    rows = [
        {
            "trade_date": date.fromisoformat(day),
            "ts_code": code,
            "close": scale * (10 + number + date.fromisoformat(day).day / 100),
            "volume": None if number == 1 else 100 * number,
        }
        for day in days
        for number, code in enumerate(codes)
    ]
    return pa.Table.from_pylist(rows, schema=_plain(DAILY))


def stocks(**names: str) -> pa.Table:
    rows = [{"ts_code": code, "name": name} for code, name in names.items()]
    return pa.Table.from_pylist(rows, schema=_plain(WHOLE))


def papers(*rows: tuple[int, str, str]) -> pa.Table:
    records = [
        {"id": number, "kind": kind, "title": title, "seen": None, "body": title.encode(), "open": True}
        for number, kind, title in rows
    ]
    return pa.Table.from_pylist(records, schema=_plain(BY_KIND))


def factors(year: int, **values: str) -> pa.Table:
    from decimal import Decimal

    rows = [{"year": year, "name": name, "factor": Decimal(value)} for name, value in values.items()]
    return pa.Table.from_pylist(rows, schema=_plain(YEARLY))


def entries(kind: str, year: int, *amounts: float) -> pa.Table:
    rows = [{"year": year, "kind": kind, "id": n, "amount": amount} for n, amount in enumerate(amounts)]
    return pa.Table.from_pylist(rows, schema=_plain(BY_KIND_AND_YEAR))


def days_from(first: str, count: int) -> list[str]:
    start = date.fromisoformat(first)
    return [(start + timedelta(days=n)).isoformat() for n in range(count)]


def with_columns(table: Table, *columns: Column) -> Table:
    return replace(table, columns=columns)


def data_files(home: Path, table: Table = DAILY) -> list[Path]:
    return sorted((home / "lake" / "warehouse" / table.namespace / table.table).rglob("*.parquet"))


def _plain(table: Table) -> pa.Schema:
    return pa.schema([pa.field(f.name, f.type) for f in table.schema])
