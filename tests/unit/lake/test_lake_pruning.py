"""Files of days that a statement filters away stay closed, and no answer changes for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.lake.client import Lake
from resources.lake.error import DataCorrupt
from tests.unit.lake.frames import data_files, on_files, prices

OCTOBER, NOVEMBER, DECEMBER = "2026-10-30", "2026-11-02", "2026-12-01"
DAYS = (OCTOBER, "2026-11-02", "2026-11-03", DECEMBER)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three months, a file each."""
    lake = on_files(tmp_path)
    for days in ([OCTOBER], ["2026-11-02", "2026-11-03"], [DECEMBER]):
        lake.replace_range("market.prices", days, prices(*days))
    return lake


def spoil(home: Path, *months: str) -> None:
    for path in data_files(home):
        if any(month in str(path) for month in months):
            path.write_bytes(path.read_bytes()[:100])


def days_of(answer: Any) -> list[str]:
    return sorted({str(day) for day in answer["trade_date"].to_pylist()})


@pytest.mark.parametrize(
    "where",
    [
        "trade_date = DATE '2026-11-02'",
        "trade_date = '2026-11-02' AND close > 0",
        "p.trade_date = DATE '2026-11-02'",
        "TRADE_DATE IN (DATE '2026-11-02', '2026-11-02'::DATE)",
        "trade_date BETWEEN '2026-11-01' AND DATE '2026-11-02'",
        "trade_date >= '2026-11-01' AND trade_date < DATE '2026-11-03'",
        "(trade_date > '2026-11-01' AND close > 0) AND trade_date <= '2026-11-02'",
    ],
)
def test_a_filter_by_day_opens_the_files_of_that_day(tmp_path: Path, lake: Lake, where: str) -> None:
    query = f"SELECT * FROM market.prices AS p WHERE {where}"
    whole = lake.sql(query)
    assert days_of(whole) == [NOVEMBER]
    spoil(tmp_path, "2026-10", "2026-12")
    assert lake.sql(query).num_rows == whole.num_rows == prices(NOVEMBER).num_rows


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("SELECT * FROM market.prices WHERE trade_date = '2026-11-02' OR close > 0", DAYS),
        ("SELECT * FROM market.prices WHERE NOT trade_date = '2026-11-02'", DAYS[:1] + DAYS[2:]),
        ("SELECT * FROM market.prices WHERE trade_date != '2026-11-02'", DAYS[:1] + DAYS[2:]),
        ("SELECT * FROM market.prices WHERE trade_date NOT IN ('2026-11-02')", DAYS[:1] + DAYS[2:]),
        ("SELECT * FROM market.prices WHERE trade_date NOT BETWEEN '2026-11-02' AND '2026-11-03'", DAYS[::3]),
        ("SELECT * FROM market.prices WHERE trade_date - 1 = '2026-11-02'", ("2026-11-03",)),
        ("SELECT * FROM market.prices WHERE trade_date >= DATE '2026-11-02' + INTERVAL 1 DAY", DAYS[2:]),
        (
            (
                "SELECT q.trade_date FROM market.prices AS q, market.prices AS p "
                "WHERE p.trade_date = '2026-11-02' AND p.ts_code = q.ts_code"
            ),
            DAYS,
        ),
        (
            (
                "SELECT trade_date FROM market.prices WHERE trade_date > "
                "(SELECT min(trade_date) FROM market.prices WHERE trade_date = '2026-11-02')"
            ),
            DAYS[2:],
        ),
        (
            "SELECT x AS trade_date FROM market.prices AS p(x, trade_date) WHERE trade_date > '000001'",
            DAYS,
        ),
        (
            (
                "SELECT trade_date FROM (SELECT * FROM market.prices WHERE trade_date > '2026-11-02') "
                "UNION SELECT trade_date FROM market.prices WHERE trade_date < '2026-11-02'"
            ),
            DAYS[::3] + DAYS[2:3],
        ),
        (
            "SELECT DATE '2026-12-01' AS trade_date FROM market.prices WHERE trade_date = '2026-11-02'",
            DAYS[3:],
        ),
        ("SELECT * FROM market.prices WHERE trade_date = '2027-01-01'", ()),
    ],
)
def test_whatever_else_is_asked_is_answered_from_all_it_needs(
    lake: Lake, query: str, days: tuple[str, ...]
) -> None:
    assert days_of(lake.sql(query)) == sorted(days)


def test_a_second_look_at_the_table_without_the_filter_opens_everything(tmp_path: Path, lake: Lake) -> None:
    spoil(tmp_path, "2026-12")
    with pytest.raises(DataCorrupt, match=DECEMBER):
        lake.sql(
            "SELECT (SELECT count(DISTINCT ts_code) FROM market.prices) FROM market.prices "
            "WHERE trade_date = '2026-11-02'"
        )


def test_a_sample_is_drawn_from_the_whole_table(tmp_path: Path, lake: Lake) -> None:
    spoil(tmp_path, "2026-12")
    with pytest.raises(DataCorrupt, match=DECEMBER):
        lake.sql("SELECT * FROM market.prices TABLESAMPLE 2 ROWS WHERE trade_date = '2026-11-02'")


def test_a_day_in_no_calendar_is_duckdbs_to_refuse(lake: Lake) -> None:
    with pytest.raises(Exception, match="2026-02-31"):
        lake.sql("SELECT * FROM market.prices WHERE trade_date = '2026-02-31'")
