"""The derived tables: adjusted prices, coverage, revisions."""

from __future__ import annotations

import pyarrow as pa

from domain.market.catalogue import Catalogue
from domain.shared.packaged import packaged
from domain.shared.table import Column, Table

_DAY = Column("trade_date", pa.date32(), "Trading day", nullable=False)
_CODE = Column("ts_code", pa.string(), "Stock code", nullable=False)


def _price(name: str, description: str) -> Column:
    return Column(name, pa.float64(), description, unit="CNY")


ADJUSTED_DAILY = Table(
    name="market.adjusted_daily",
    description=(
        "Back-adjusted (hfq) prices: price × factor of the day. They never change afterwards; "
        "forward-adjusted (qfq) prices are the view market.qfq_daily, computed at read time."
    ),
    columns=(
        _DAY,
        _CODE,
        Column("adj_factor", pa.float64(), "Cumulative adjustment factor", unit="ratio"),
        _price("hfq_open", "Opening price, back-adjusted"),
        _price("hfq_high", "Highest price, back-adjusted"),
        _price("hfq_low", "Lowest price, back-adjusted"),
        _price("hfq_close", "Closing price, back-adjusted"),
        _price("hfq_pre_close", "Previous close, back-adjusted"),
        Column("vol", pa.float64(), "Traded volume", unit="lots of 100 shares"),
        Column("amount", pa.float64(), "Turnover", unit="thousand CNY"),
    ),
    key=("trade_date", "ts_code"),
    partition_kind="day",
    partition_columns=("trade_date",),
)

COVERAGE = Table(
    name="market.coverage",
    description="Per day and table: rows, expected rows, and the status that follows.",
    columns=(
        _DAY,
        Column("table_name", pa.string(), "Table that the row describes", nullable=False),
        Column("rows", pa.int64(), "Rows in the lake", unit="rows", nullable=False),
        Column("expected", pa.int64(), "Rows of a complete day; NULL if unknown", unit="rows"),
        Column("ratio", pa.float64(), "rows / expected", unit="ratio"),
        Column("missing_stocks", pa.int64(), "Expected stocks that have no row", unit="stocks"),
        Column("unexpected_stocks", pa.int64(), "Stocks with an unexpected row", unit="stocks"),
        Column("missing_sample", pa.string(), "The first few missing stocks"),
        Column(
            "status",
            pa.string(),
            "complete, partial, explained, asked, incomplete, missing, corrupt or unjudged",
            nullable=False,
        ),
        Column("digest", pa.string(), "Content hash of the day", nullable=False),
    ),
    key=("trade_date", "table_name"),
    partition_kind="day",
    partition_columns=("trade_date",),
)

REVISIONS = Table(
    name="market.revisions",
    description="Rows that the source changed after they were fetched, with old and new values.",
    columns=(
        _DAY,
        Column("table_name", pa.string(), "Table the row belongs to", nullable=False),
        Column("ts_code", pa.string(), "Stock code; empty where a table has none", nullable=False),
        Column("row_key", pa.string(), "What else the row's key has; mostly empty", nullable=False),
        Column("seen", pa.timestamp("us", tz="UTC"), "When the change was seen", nullable=False),
        Column(
            "change", pa.string(), "changed, added, removed; lost: the rows cannot be read", nullable=False
        ),
        Column("old", pa.string(), "Old values as JSON; of a change, only the columns that differ"),
        Column("new", pa.string(), "New values as JSON; of a change, only the columns that differ"),
    ),
    key=("trade_date", "table_name", "ts_code", "row_key", "seen"),
    partition_kind="day",
    partition_columns=("trade_date",),
)

QFQ_DAILY = "market.qfq_daily"


def views() -> dict[str, str]:
    """Return the views that are computed at read time: name and SELECT."""
    return {QFQ_DAILY: packaged(__file__, "qfq_daily")}


DERIVED = (ADJUSTED_DAILY, COVERAGE, REVISIONS)


def all_tables(catalogue: Catalogue) -> tuple[Table, ...]:
    return (*(e.table for e in catalogue.endpoints), *DERIVED)
