"""Trading days are the real ones, then plausible ones."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest

from sandbox.market import holidays, reference
from sandbox.market.calendar import LAST_YEAR, Calendar
from sandbox.market.market import Market


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return Calendar.load()


@pytest.mark.filterwarnings("ignore:Series.values")  # of the package under this pandas
def test_holidays__packaged_file__equals_the_calendar_package() -> None:
    assert json.loads(holidays.FILE.read_text()) == holidays.from_package()


def test_open_days__after_the_record__follow_the_rules(calendar: Calendar) -> None:
    for year in range(calendar.recorded_until.year + 1, LAST_YEAR + 1):
        days = calendar.open_days(date(year, 1, 1), date(year, 12, 31))
        assert 238 <= len(days) <= 250
        assert all(day.weekday() < 5 for day in days)
        closed = {date(year, 1, 1), date(year, 5, 1), date(year, 10, 1), date(year, 10, 3)}
        assert not closed & set(days)


@pytest.mark.parametrize(
    ("today", "last"), [(date(2026, 11, 30), "20261231"), (date(2026, 12, 1), "20271231")]
)
def test_trade_cal__december__announces_next_year(market: Market, today: date, last: str) -> None:
    rows = reference.trade_cal(market, "SSE", date(2026, 1, 1), reference.announced_until(today))
    assert rows["cal_date"][0] == last


def test_trade_cal__holiday__names_the_open_day_before(market: Market) -> None:
    rows = reference.trade_cal(market, "SZSE", date(2026, 9, 29), date(2026, 10, 9))
    found = dict(zip(rows["cal_date"], zip(rows["is_open"], rows["pretrade_date"], strict=True), strict=True))
    assert found["20261001"] == (0, "20260930")
    assert found["20261005"] == (0, "20260930")
    assert found["20261008"] == (1, "20260930")
    assert found["20261009"] == (1, "20261008")


@pytest.mark.parametrize(("name", "first"), [("SSE", "19901219"), ("SZSE", "19910703"), ("BSE", "20211115")])
def test_trade_cal__of_an_exchange__starts_on_its_first_day(market: Market, name: str, first: str) -> None:
    rows = reference.trade_cal(market, name, date.min, date(2022, 1, 1))
    assert rows["cal_date"][-1] == first
    assert rows["pretrade_date"][-1] is None
    assert np.isin(rows["is_open"], (0, 1)).all()
