"""The pacer never lets a home call more often than its account may, and never waits without an end."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from resources.tushare.errors import RateLimited
from resources.tushare.pace import Pacer, calls_per_minute, pace

FIRST = datetime(2026, 11, 17, 10, 0, tzinfo=UTC)


def pacer_of(engine: sa.Engine, time_: Any, per_minute: int) -> Pacer:
    return Pacer(engine, per_minute=per_minute, clock=time_.clock, sleeper=time_.sleep)


def windows(engine: sa.Engine) -> dict[datetime, int]:
    with engine.connect() as connection:
        return {row.window_start: row.used for row in connection.execute(sa.select(pace))}


@pytest.mark.parametrize(
    ("points", "calls"),
    [(0, 50), (120, 50), (1999, 50), (2000, 200), (4999, 200), (5000, 500), (10_000, 1000), (15_000, 1000)],
)
def test_calls_per_minute__points__decide_them(points: int, calls: int) -> None:
    assert calls_per_minute(points) == calls


def test_take__minute_used_up__waits_for_the_next(engine: sa.Engine, time_: Any) -> None:
    time_.now += timedelta(seconds=20)
    pacer = pacer_of(engine, time_, 50)
    for _ in range(51):
        pacer.take("daily")
    assert time_.naps == [40.0]
    assert time_.now == FIRST + timedelta(minutes=1)


@pytest.mark.parametrize("limit", [1, 3, 50, 57])
def test_take__one_process__loses_no_call_to_blocks(engine: sa.Engine, time_: Any, limit: int) -> None:
    pacer = pacer_of(engine, time_, limit)
    for _ in range(limit):
        pacer.take("daily")
    assert time_.naps == []


def test_take__several_pacers__share_the_limit(engine: sa.Engine, time_: Any) -> None:
    pacers = [pacer_of(engine, time_, 50) for _ in range(3)]
    called: Counter[datetime] = Counter()
    for turn in range(90):
        pacers[turn % 3].take("daily")
        called[time_.now.replace(second=0)] += 1
    assert max(called.values()) <= 50
    assert sum(called.values()) == 90


def test_take__many_calls__writes_once_per_block(engine: sa.Engine, time_: Any) -> None:
    asked: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *event: asked.append(event[2]))
    pacer = pacer_of(engine, time_, 1000)
    for _ in range(100):
        pacer.take("daily")
    assert sum(text.startswith("INSERT INTO pace") for text in asked) == 10


def test_take__edge_of_a_minute__waits(engine: sa.Engine, time_: Any) -> None:
    time_.now += timedelta(seconds=59.9)
    pacer_of(engine, time_, 50).take("daily")
    assert time_.naps == [pytest.approx(0.1)]
    assert windows(engine) == {FIRST + timedelta(minutes=1): 5}


def test_pause__for_the_minute__stops_that_endpoint_in_every_process(engine: sa.Engine, time_: Any) -> None:
    time_.now += timedelta(seconds=20)
    reported, other = pacer_of(engine, time_, 50), pacer_of(engine, time_, 50)
    reported.take("daily")
    reported.pause("daily", None)
    reported.take("adj_factor")
    other.take("adj_factor")
    assert time_.naps == []
    other.take("daily")
    assert time_.naps == [40.0]
    time_.now = FIRST + timedelta(seconds=20)
    reported.take("daily")
    assert time_.naps == [40.0, 40.0]


def test_pause__as_long_as_the_source_says__is_not_rounded(engine: sa.Engine, time_: Any) -> None:
    pacer = pacer_of(engine, time_, 50)
    pacer.take("daily")
    pacer.pause("daily", timedelta(seconds=7))
    pacer.take("daily")
    assert time_.naps == [7.0]


def test_take__paused_for_long__raises_with_what_is_left(engine: sa.Engine, time_: Any) -> None:
    pacer = pacer_of(engine, time_, 50)
    pacer.pause("daily", timedelta(minutes=9))
    with pytest.raises(RateLimited) as caught:
        pacer.take("daily")
    assert caught.value.retry_after == timedelta(minutes=9)
    assert time_.naps == []
    pacer.take("adj_factor")


def test_take__waits__tells_what_waits_and_how_long(
    engine: sa.Engine, time_: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "perennial.progress.wait")
    pacer = pacer_of(engine, time_, 50)
    pacer.pause("daily", None)
    pacer.take("daily")
    assert [record.args for record in caplog.records] == [("daily", 60.0)]


def test_take__nothing_free__waits_two_minutes_at_most(engine: sa.Engine, time_: Any) -> None:
    with engine.begin() as connection:
        for minute in range(5):
            row = {"source": "tushare", "window_start": FIRST + timedelta(minutes=minute), "used": 50}
            connection.execute(sa.insert(pace).values(row))
    with pytest.raises(RateLimited, match="daily: no call of tushare became free") as caught:
        pacer_of(engine, time_, 50).take("daily")
    assert sum(time_.naps) == 120.0
    assert caught.value.retry_after == timedelta(minutes=1)
    assert not caught.value.retry_in_run


def test_take__old_windows__are_deleted_of_this_source_only(engine: sa.Engine, time_: Any) -> None:
    Pacer(engine, per_minute=50, source="elsewhere", clock=time_.clock, sleeper=time_.sleep).take("daily")
    pacer = pacer_of(engine, time_, 50)
    for _ in range(30):
        pacer.take("daily")
        time_.now += timedelta(minutes=1)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(pace.c.source, sa.func.count()).group_by(pace.c.source)).all()
    assert dict(rows) == {"elsewhere": 1, "tushare": 11}
