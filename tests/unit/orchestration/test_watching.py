"""Streams: one reader for all clients, and to each the newest state that there is when it is ready for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping

import pytest

from domain.shared.error import PerennialError, TransientResourceError
from orchestration.api import watching
from orchestration.api.watching import Hub, Snapshot, Topic

A: Topic = ("pipeline", "A")
B: Topic = ("job", "7")


class Numbers:
    """A reader of numbers that a test sets; 0 ends a topic."""

    def __init__(self, **states: int) -> None:
        self.states = states
        self.asked: list[set[Topic]] = []
        self.closed = 0
        self.error: PerennialError | None = None
        self.bug = False
        self.slow: dict[str, threading.Event] = {}
        """What is read only when a test lets it, and takes long."""

    def read(self, held: Mapping[Topic, Snapshot | None]) -> Mapping[Topic, Snapshot | None]:
        self.asked.append(set(held))
        for _, name in held:
            if name in self.slow:
                assert self.slow[name].wait(5)
                time.sleep(3 * watching.SLOW_SECONDS)
        if self.error:
            raise self.error
        if self.bug:
            raise ZeroDivisionError
        return {topic: self._snapshot(self.states.get(topic[1])) for topic in held}

    def problem(self, error: PerennialError) -> Snapshot:
        return Snapshot("problem", None, error.reason_code)

    def close(self) -> None:
        self.closed += 1

    def _snapshot(self, state: int | None) -> Snapshot | None:
        if state is None:
            return None
        return Snapshot("state" if state else "end", str(state), str(state))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(watching, "PATIENCE_SECONDS", 0.005)


def hub_of(reader: Numbers, most: int) -> Hub:
    return Hub(lambda: reader, most)


def run(story) -> None:
    async def within() -> None:
        async with asyncio.timeout(10):
            await story

    asyncio.run(within())


async def follow(hub: Hub, topic: Topic, last_id: str | None = None) -> AsyncIterator[Snapshot]:
    async with hub.watching(topic) as watch:
        await watch.first()
        async for snapshot in watch.follow(last_id):
            yield snapshot


def test_follow__state_changes__each_client_gets_it_and_the_end():
    async def client(hub: Hub, reader: Numbers) -> list[str]:
        seen = []
        async for snapshot in follow(hub, A):
            seen.append(f"{snapshot.event} {snapshot.id}")
            reader.states["A"] = max(reader.states["A"] - 1, 0)
        return seen

    async def story() -> None:
        hub = hub_of(reader := Numbers(A=1), most=10)
        first, second = await asyncio.gather(client(hub, reader), client(hub, reader))
        assert first[-1] == second[-1] == "end 0"
        assert first[0] == "state 1"
        await settled(hub)
        assert (hub.listening, reader.closed) == (0, 1)

    run(story())


async def settled(hub: Hub) -> None:
    """Nobody watches, and the reader has stopped."""
    while hub._task is not None or hub._watches:
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)


def test_follow__many_topics_and_clients__are_read_together():
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=1, **{"7": 1}), most=100)
        streams = [follow(hub, topic) for topic in (A, B) for _ in range(20)]
        for snapshot in [await anext(stream) for stream in streams]:
            assert snapshot.id == "1"
        while reader.asked.count({A, B}) < 5:
            await asyncio.sleep(0.005)
        assert hub.reads == len(reader.asked)
        for stream in streams:
            await stream.aclose()

    run(story())


def test_follow__client_was_slow__gets_the_newest_state_only():
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=9), most=10)
        slow, quick = follow(hub, A), follow(hub, A)
        assert (await anext(slow)).id == "9"
        for state in (8, 7, 6):
            await anext(quick)
            reader.states["A"] = state
        while (await anext(quick)).id != "6":
            pass
        assert (await anext(slow)).id == "6"
        await slow.aclose()
        await quick.aclose()

    run(story())


def test_follow__client_names_the_state_it_has__waits_for_the_next():
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=3), most=10)
        stream = follow(hub, A, last_id="3")
        following = asyncio.ensure_future(anext(stream))
        while hub.reads < 3:
            await asyncio.sleep(0.005)
        assert not following.done()
        reader.states["A"] = 2
        assert (await following).id == "2"
        await stream.aclose()
        reader.states["A"] = 0
        assert [one.event async for one in follow(hub, A, last_id="0")] == ["end"], "an end is said again"

    run(story())


def test_first__unknown_topic__is_none_and_is_forgotten():
    async def story() -> None:
        hub = hub_of(Numbers(), most=10)
        async with hub.watching(A) as watch:
            assert await watch.first() is None
        assert (hub.listening, hub._watches) == (0, {})

    run(story())


def test_watching__as_many_as_may_be__refuses_one_more_until_one_goes():
    async def story() -> None:
        hub = hub_of(Numbers(A=1), most=1)
        stream = follow(hub, A)
        await anext(stream)
        with pytest.raises(TransientResourceError) as refused:
            async with hub.watching(A):
                pass
        assert refused.value.reason_code == "too_many_streams"
        await stream.aclose()
        async with hub.watching(A):
            assert hub.listening == 1

    run(story())


def test_follow__ledger_is_away__says_so_and_goes_on_when_it_is_back():
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=5), most=10)
        stream = follow(hub, A)
        assert (await anext(stream)).id == "5"
        reader.error = TransientResourceError("away", reason_code="ledger_unreachable")
        assert (await anext(stream)).data == "ledger_unreachable"
        reader.error = None
        assert (await anext(stream)).id == "5", (
            "the same state as before: the client has to know that it is so"
        )
        await stream.aclose()

    run(story())


@pytest.mark.parametrize("how", ["stop", "bug"])
def test_follow__server_stops__ends_every_stream(how: str):
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=1), most=10)
        stream = follow(hub, A)
        await anext(stream)
        following = asyncio.ensure_future(anext(stream, None))
        task = hub._task
        assert task is not None
        if how == "stop":
            hub.stop()
        else:
            reader.bug = True
        assert await following is None
        await asyncio.gather(task, return_exceptions=True)
        assert hub.listening == 0

    run(story())


def test_follow__one_topic_takes_long__holds_no_other_and_is_read_rarely():
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=1, **{"7": 9}), most=10)
        quick = follow(hub, B)
        assert (await anext(quick)).id == "9"
        reader.slow["A"] = threading.Event()
        slow = asyncio.ensure_future(anext(follow(hub, A)))
        for state in (8, 7, 6):
            reader.states["7"] = state
            assert (await anext(quick)).id == str(state)
        assert not slow.done()
        reader.slow["A"].set()
        assert (await slow).id == "1"
        begun, before = time.monotonic(), len(reader.asked)
        while time.monotonic() - begun < 15 * watching.SLOW_SECONDS:
            await asyncio.sleep(0.005)
        later = reader.asked[before:]
        assert [asked for asked in later if A in asked] == [], "a read that takes t: at most every 10 t"
        assert len([asked for asked in later if asked == {B}]) > 5
        await quick.aclose()

    run(story())


def test_follow__many_together_took_long__only_the_slow_one_is_read_alone():
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=1, **{"7": 1}), most=10)
        streams = [follow(hub, topic) for topic in (A, B)]
        for stream in streams:
            await anext(stream)
        while {A, B} not in reader.asked:
            await asyncio.sleep(0.005)
        reader.slow["A"] = threading.Event()
        reader.slow["A"].set()
        while reader.asked[-3:] != [{B}] * 3:
            await asyncio.sleep(0.005)
        assert {A} in reader.asked
        for stream in streams:
            await stream.aclose()

    run(story())


@pytest.mark.parametrize("how", ["stop", "bug"])
def test_first__server_stops_before_it_was_read__is_no_unknown_topic(how: str):
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=1), most=10)
        reader.slow["A"], reader.bug = threading.Event(), how == "bug"
        async with hub.watching(A) as watch:
            asyncio.get_running_loop().call_later(0.02, reader.slow["A"].set)
            if how == "stop":
                hub.stop()
            with pytest.raises(TransientResourceError) as stopped:
                await watch.first()
        assert stopped.value.reason_code == "streams_stop"
        await asyncio.gather(*filter(None, [hub._task]), return_exceptions=True)

    run(story())


def test_watching__again_while_the_last_read_goes_on__is_read():
    async def story() -> None:
        hub = hub_of(reader := Numbers(A=1), most=10)
        reader.slow["A"] = threading.Event()
        async with hub.watching(A):
            while not reader.asked:
                await asyncio.sleep(0.005)
        async with hub.watching(A) as watch:
            reader.slow["A"].set()
            assert await watch.first() is not None
        await settled(hub)

    run(story())
