"""Rates, and values that are kept for a moment: with a clock that a test sets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from domain.shared.error import TransientResourceError
from orchestration.api import limits
from orchestration.api.limits import LARGEST_BODY, Limits, Rate, body_limit
from orchestration.api.recent import OLDEST, SECONDS, TIMES, Recent


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rate__more_than_twice_at_once__waits_until_one_is_free():
    clock = Clock()
    rate = Rate(2.0, clock)
    assert [rate.wait("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    assert rate.wait("b") == 0, "each address has its own"
    clock.now += 0.5
    assert [rate.wait("a") for _ in range(2)] == [0, 0.5]
    clock.now += 3600
    assert [rate.wait("a") for _ in range(5)] == [0, 0, 0, 0, 0.5], "an hour of silence is no credit"


def test_rate__many_addresses__are_forgotten_the_oldest_first(monkeypatch):
    monkeypatch.setattr(limits, "CLIENTS", 3)
    rate = Rate(1.0, Clock())
    for client in "abcdea":
        rate.wait(client)
    assert list(rate.buckets) == ["d", "e", "a"]


def looks(clock: Clock, seconds: float) -> tuple[list[float], Callable[[], float]]:
    seen: list[float] = []

    def look() -> float:
        clock.now += seconds
        seen.append(clock.now)
        return clock.now

    return seen, look


def test_recent__asked_often__looks_once_in_a_while():
    clock = Clock()
    seen, look = looks(clock, 0.1)
    recent = Recent(look, clock)
    assert {recent.get() for _ in range(50)} == {0.1}
    clock.now += SECONDS
    assert recent.get() > SECONDS
    assert len(seen) == 2


def test_recent__look_is_slow__is_kept_longer():
    clock = Clock()
    seen, look = looks(clock, 3.0)
    recent = Recent(look, clock)
    recent.get()
    clock.now += 3.0 * TIMES - 0.1
    recent.get()
    assert len(seen) == 1
    clock.now += 0.2
    recent.get()
    assert len(seen) == 2


def test_recent__somebody_looks__others_get_the_last_value_unless_it_is_old():
    clock = Clock()
    asked, go_on = threading.Event(), threading.Event()
    numbers = iter(range(9))

    def look() -> int:
        number = next(numbers)
        if number:
            asked.set()
            assert go_on.wait(10)
        return number

    recent = Recent(look, clock)
    assert recent.get() == 0
    clock.now += SECONDS + 1
    found: list[int] = []
    looker = threading.Thread(target=lambda: found.append(recent.get()))
    looker.start()
    assert asked.wait(10)
    assert recent.get() == 0, "answered at once"
    clock.now += OLDEST
    waiter = threading.Thread(target=lambda: found.append(recent.get()))
    waiter.start()
    go_on.set()
    looker.join()
    waiter.join()
    assert found == [1, 1], "one look for both"


def test_body__large_ones_at_once__have_room_together_and_give_it_back(monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_TOGETHER", 3 * LARGEST_BODY)
    large = {"route": SimpleNamespace(openapi_extra=body_limit(1 << 30))}

    async def story() -> None:
        full = asyncio.Event()

        async def app(scope, receive, send):
            for _ in range(scope["parts"]):
                await receive()
            await full.wait()

        limited = Limits(app, rate=100)

        def call(parts: int):
            async def receive():
                return {"type": "http.request", "body": b" " * LARGEST_BODY, "more_body": True}

            scope = {"type": "http", "headers": [], "parts": parts, **large}
            return asyncio.ensure_future(limited(scope, receive, None))

        first = call(2)
        await asyncio.sleep(0)
        small = call(1)
        with pytest.raises(TransientResourceError) as refused:
            await call(2)
        assert (refused.value.reason_code, bool(refused.value.retry_after)) == ("too_many_files", True)
        full.set()
        await asyncio.gather(first, small)
        assert limited.held == 0
        await call(3)

    asyncio.run(story())
