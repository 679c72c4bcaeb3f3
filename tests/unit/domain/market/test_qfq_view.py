"""Forward-adjusted prices: a view over the lake, against the same arithmetic in plain Python."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from domain.market.catalogue import catalogue
from domain.market.tables import all_tables, views
from domain.shared.error import InvalidInput
from resources.lake.client import Lake

DAYS = (date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 18))
CLOSES = {"600000.SH": (10.0, 5.0, 5.5), "000001.SZ": (20.0, 21.0, 22.0)}
FACTORS = {"600000.SH": (1.0, 2.0, 2.0), "000001.SZ": (3.0, 3.0, 3.0)}


def table(name: str, column: str, values: dict[str, tuple[float, ...]]) -> pa.Table:
    rows = [
        {"trade_date": day, "ts_code": code, column: value}
        for code, series in values.items()
        for day, value in zip(DAYS, series, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=catalogue().by_name(name).table.schema)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(
        catalog_url=f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "warehouse"),
        home=tmp_path,
        tables=all_tables(catalogue()),
        views=views(),
    )


def fill(lake: Lake) -> None:
    days = [str(d) for d in DAYS]
    lake.replace("market.normalized_daily", days, table("normalized_daily", "close", CLOSES))
    factors = table("normalized_adj_factor", "adj_factor", FACTORS)
    lake.replace("market.normalized_adj_factor", days, factors)


def test_forward_adjusted_prices_are_scaled_to_the_newest_factor(lake: Lake) -> None:
    fill(lake)
    found = lake.sql(
        "SELECT ts_code, qfq_close FROM market.qfq_daily ORDER BY ts_code, trade_date"
    ).to_pylist()
    expected = [
        (code, CLOSES[code][i] * FACTORS[code][i] / FACTORS[code][-1])
        for code in sorted(CLOSES)
        for i in range(3)
    ]
    assert [(row["ts_code"], row["qfq_close"]) for row in found] == expected


def test_the_view_is_listed_and_cannot_be_written(lake: Lake) -> None:
    listed = lake.sql("SELECT table_name FROM information_schema.tables")["table_name"].to_pylist()
    assert "qfq_daily" in listed
    with pytest.raises(InvalidInput):
        lake.sql("INSERT INTO market.qfq_daily SELECT * FROM market.qfq_daily")
