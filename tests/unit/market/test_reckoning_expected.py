"""How many rows a day should have, and which days of the far past have fewer: against plain counting."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.catalogue import Catalogue
from domain.market.reckoning import expected_rows, history_gaps
from domain.market.tables import HISTORY_GAPS
from tests.unit.market.frames import FIRST, STOCKS, SUSPENSIONS, Exchange, arrow, exchanges
from tests.unit.market.world import CATALOGUE, DAILY, JUDGED

COUNTED = pa.schema([("table_name", pa.string()), ("trade_date", pa.date32()), ("n", pa.int64())])


def one_stock(listed: date | None, delisted: date | None) -> pa.Table:
    return arrow([{"ts_code": "600000.SH", "list_date": listed, "delist_date": delisted}], STOCKS)


def suspended(timing: str | None, kind: str, times: int = 1) -> pa.Table:
    row = {"trade_date": FIRST, "ts_code": "600000.SH", "suspend_timing": timing, "suspend_type": kind}
    return arrow([row] * times, SUSPENSIONS)


NOBODY = suspended(None, "S", times=0)
DAY = timedelta(days=1)


@given(exchanges())
@settings(max_examples=12, deadline=None)
def test_expected_rows_are_those_counted_one_by_one(exchange: Exchange) -> None:
    assert expected_rows(exchange.days, exchange.stock_table, exchange.suspension_table) == {
        day: {"listed": len(exchange.listed(day)), "listed_less_suspended": len(exchange.traded(day))}
        for day in exchange.days
    }


@pytest.mark.parametrize(
    ("listed", "delisted", "count"),
    [
        (FIRST, None, 1),  # from its very first day
        (FIRST + DAY, None, 0),
        (FIRST - DAY, FIRST + DAY, 1),
        (FIRST - DAY, FIRST, 0),  # not on the day from which it no longer trades
        (FIRST, FIRST, 0),
        (None, None, 0),  # approved, not yet listed
    ],
)
def test_a_stock_counts_from_its_listing_until_the_day_before_its_delisting(
    listed: date | None, delisted: date | None, count: int
) -> None:
    assert expected_rows([FIRST], one_stock(listed, delisted), NOBODY)[FIRST]["listed"] == count


# The far past


def gaps(
    exchange: Exchange,
    counts: dict[tuple[str, date], int],
    explained: Collection[tuple[str, date]] = (),
    catalogue: Catalogue = CATALOGUE,
) -> list[tuple[date, str, int, int | None, str]]:
    counted = arrow([{"table_name": t, "trade_date": d, "n": n} for (t, d), n in counts.items()], COUNTED)
    found = history_gaps(
        catalogue, exchange.days, counted, exchange.stock_table, exchange.suspension_table, explained
    )
    assert found.schema == HISTORY_GAPS.schema
    return [tuple(row.values()) for row in found.to_pylist()]


@st.composite
def counted_days(draw: st.DrawFn, exchange: Exchange) -> dict[tuple[str, date], int]:
    places = [(table, day) for table in DAILY for day in exchange.days]
    return draw(st.dictionaries(st.sampled_from(places), st.integers(1, 6))) if places else {}


@given(exchanges(), st.data())
@settings(max_examples=12, deadline=None)
def test_gaps_of_the_past_are_those_found_one_by_one(exchange: Exchange, data: st.DataObject) -> None:
    counts = data.draw(counted_days(exchange))
    places = [(table, day) for table in DAILY for day in exchange.days]
    explained = set(data.draw(st.lists(st.sampled_from(places)))) if places else set()
    wanted: list[tuple[date, str, int, int | None, str]] = []
    for day in sorted(exchange.days, reverse=True):
        for table in sorted(DAILY):
            rows = counts.get((table, day), 0)
            if table == "suspensions":
                if not rows and (table, day) not in explained:
                    wanted.append((day, table, 0, None, "missing"))
                continue
            reference = CATALOGUE.by_name(table).expected
            expected = len(exchange.wanted(reference, day)) if exchange.stocks else None
            if not rows:
                if expected != 0:
                    wanted.append((day, table, 0, expected, "missing"))
            elif expected and 10 * rows < 9 * expected:
                wanted.append((day, table, rows, expected, "incomplete"))
            elif expected and 100 * rows < 99 * expected and (table, day) not in explained:
                wanted.append((day, table, rows, expected, "partial"))
    assert gaps(exchange, counts, explained) == wanted


THOUSAND = Exchange(
    [FIRST],
    [{"ts_code": f"{n:06}.SZ", "list_date": FIRST, "delist_date": None} for n in range(1_000)],
    [],
)
WHOLE = {**dict.fromkeys(((t, FIRST) for t in JUDGED), 1_000), ("suspensions", FIRST): 1}
PRICES = ("normalized_daily", FIRST)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [(1, "incomplete"), (899, "incomplete"), (900, "partial"), (989, "partial"), (990, "")],
)
def test_the_past_is_judged_by_the_same_thresholds(rows: int, reason: str) -> None:
    found = gaps(THOUSAND, {**WHOLE, PRICES: rows})
    assert found == ([(FIRST, PRICES[0], rows, 1_000, reason)] if reason else [])


def test_without_a_stock_list_lost_days_are_still_found() -> None:
    found = gaps(replace(THOUSAND, stocks=[]), {})
    assert {(table, reason) for _, table, _, _, reason in found} == {(table, "missing") for table in DAILY}


def test_the_fixed_number_of_rows_counts_in_the_past_too() -> None:
    by_floor = replace(CATALOGUE.by_name("suspensions"), may_be_empty=False, floor=4_000)
    catalogue = replace(CATALOGUE, daily=(by_floor,))
    assert gaps(THOUSAND, {("suspensions", FIRST): 3_999}, catalogue=catalogue) == [
        (FIRST, "suspensions", 3_999, 4_000, "incomplete")
    ]
    assert not gaps(THOUSAND, {("suspensions", FIRST): 4_000}, catalogue=catalogue)
