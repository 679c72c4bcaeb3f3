"""Which runs a backfill takes: days near each other share one, days far apart do not."""

from datetime import date, timedelta

from domain.market.trading import TradingCalendar
from services.market.backfill import FAR, RUNS, spans

OPEN = [date(2020, 1, 1) + timedelta(days=n) for n in range(0, 3000, 2)]
"""Every second day is a trading day."""
CALENDAR = TradingCalendar.of(OPEN, range(2020, 2029))


def runs(*places: int) -> list[tuple[int, int]]:
    found = spans([OPEN[place] for place in places], CALENDAR)
    return [(OPEN.index(first), OPEN.index(last)) for first, last in found]


def test_spans__one_day__is_one_run() -> None:
    assert runs(7) == [(7, 7)]


def test_spans__near_days__are_one_run() -> None:
    assert runs(0, 1, 2, 2 + FAR, 2 + 2 * FAR) == [(0, 2 + 2 * FAR)]


def test_spans__next_day_far__ends_the_run() -> None:
    assert runs(0, 5, 6 + FAR, 9 + FAR, 400) == [(0, 5), (6 + FAR, 9 + FAR), (400, 400)]


def test_spans__scattered_days__are_parted_at_the_widest_gaps() -> None:
    near = [place * (FAR + 1) for place in range(RUNS)]
    assert len(runs(*near)) == RUNS
    found = runs(*near, near[-1] + 500)
    assert len(found) == RUNS
    assert found[-1] == (near[-1] + 500, near[-1] + 500)
    assert found[0][0] == 0


def test_spans__calendar_unknown__is_one_run() -> None:
    assert spans([date(1999, 1, 4), date(2019, 1, 4)], CALENDAR) == [(date(1999, 1, 4), date(2019, 1, 4))]
