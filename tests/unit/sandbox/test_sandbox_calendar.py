"""Trading days are the real ones, then plausible ones."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest

from sandbox.market import holidays, reference
from sandbox.market.calendar import LAST_YEAR, Calendar
from sandbox.market.market import Market

# The package is not yet quiet under this pandas.
package_noise = pytest.mark.filterwarnings("ignore:Series.values")


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return Calendar.load()


@package_noise
def test_packaged_file_says_what_the_calendar_package_says() -> None:
    assert json.loads(holidays.FILE.read_text()) == holidays.from_package()


@package_noise
def test_recorded_days_are_exactly_the_sessions_of_shanghai(calendar: Calendar) -> None:
    import exchange_calendars

    package = exchange_calendars.get_calendar("XSHG", start=holidays.FIRST_DAY)
    recorded = calendar.open_days(date(1990, 12, 19), calendar.recorded_until)
    assert recorded == [session.date() for session in package.sessions]


def test_a_day_after_the_record_follows_the_rules(calendar: Calendar) -> None:
    for year in range(calendar.recorded_until.year + 1, LAST_YEAR + 1):
        days = calendar.open_days(date(year, 1, 1), date(year, 12, 31))
        assert 238 <= len(days) <= 250
        assert all(day.weekday() < 5 for day in days)
        closed = {date(year, 1, 1), date(year, 5, 1), date(year, 10, 1), date(year, 10, 3)}
        assert not closed & set(days)


@pytest.mark.parametrize(
    ("today", "last"), [(date(2026, 11, 30), "20261231"), (date(2026, 12, 1), "20271231")]
)
def test_next_year_is_announced_in_december(market: Market, today: date, last: str) -> None:
    rows = reference.trade_cal(market, "SSE", date(2026, 1, 1), reference.announced_until(today))
    assert rows["cal_date"][0] == last


def test_calendar_rows_name_the_open_day_before(market: Market) -> None:
    rows = reference.trade_cal(market, "SZSE", date(2026, 9, 29), date(2026, 10, 9))
    found = dict(zip(rows["cal_date"], zip(rows["is_open"], rows["pretrade_date"], strict=True), strict=True))
    assert found["20261001"] == (0, "20260930")
    assert found["20261005"] == (0, "20260930")
    assert found["20261008"] == (1, "20260930")
    assert found["20261009"] == (1, "20261008")


@pytest.mark.parametrize(("name", "first"), [("SSE", "19901219"), ("SZSE", "19910703"), ("BSE", "20211115")])
def test_an_exchange_starts_on_its_first_day_with_nothing_before(
    market: Market, name: str, first: str
) -> None:
    rows = reference.trade_cal(market, name, date.min, date(2022, 1, 1))
    assert rows["cal_date"][-1] == first
    assert rows["pretrade_date"][-1] is None
    assert np.isin(rows["is_open"], (0, 1)).all()
