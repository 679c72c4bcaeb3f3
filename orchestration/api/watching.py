"""One reader for all who watch: it reads what is watched twice a second and gives each client the newest.

A client holds no queue. When it is ready for more it gets the state of that moment, so a slow one misses what
lay between and holds nobody; its place ends with its connection. Nothing is read while nobody watches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, Protocol

import anyio.to_thread

from domain.shared.error import PerennialError, TransientResourceError

POLL_SECONDS = 0.5
PATIENCE_SECONDS = 5.0
"""After a read that failed."""

Topic = tuple[Literal["pipeline", "job"], str]
"""What is watched, and its id."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What clients are sent of a topic: JSON, and an id that changes with it. Nothing follows an `end`."""

    event: Literal["state", "end", "problem"]
    id: str | None
    data: str
    stamp: Any = field(default=None, compare=False)
    """From what it was made: while that is the same, it need not be made again."""


class Reader(Protocol):
    """Reads topics, in one thread at a time."""

    def read(self, held: Mapping[Topic, Snapshot | None]) -> Mapping[Topic, Snapshot | None]:
        """Return what is new of these topics, given what is held of them; None of what nobody knows."""

    def problem(self, error: PerennialError) -> Snapshot: ...
    def close(self) -> None: ...


@dataclass(eq=False)
class Watch:
    """One topic, for all clients that watch it."""

    listeners: int = 0
    snapshot: Snapshot | None = None
    read: bool = False
    """Whether the topic was read; nobody knows it if there is no snapshot then."""
    over: bool = False
    """Whether the server stops."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def publish(self, snapshot: Snapshot | None) -> None:
        if not self.read or snapshot != self.snapshot:
            self.read, self.snapshot = True, snapshot
            self.wake()

    def wake(self) -> None:
        woken, self.changed = self.changed, asyncio.Event()
        woken.set()

    async def first(self) -> Snapshot | None:
        """Wait until the topic was read; return its state, None if nobody knows it."""
        while not (self.read or self.over):
            await self.changed.wait()
        return self.snapshot

    async def follow(self, last_id: str | None = None) -> AsyncIterator[Snapshot]:
        """Yield the newest state whenever the client is ready for it, until the end.

        A client that names the state it has waits for the next, if there will be one.
        """
        sent: Snapshot | None = None
        while not self.over:
            now, changed = self.snapshot, self.changed
            known = now is sent or (sent is None and now is not None and now.id == last_id)
            if now is None or (known and now.event != "end"):
                await changed.wait()
                continue
            yield now
            if now.event == "end":
                return
            sent = now


@dataclass
class Hub:
    """Everything that is watched in this process."""

    reader: Reader
    most: int
    """Clients at once."""
    clock: Callable[[], float] = time.monotonic
    listening: int = 0
    reads: int = 0
    _watches: dict[Topic, Watch] = field(default_factory=dict)
    _task: asyncio.Task[None] | None = None
    _hurry: asyncio.Event = field(default_factory=asyncio.Event)

    @cached_property
    def _thread(self) -> anyio.CapacityLimiter:
        """Of the reader alone: the threads of requests may all be busy."""
        return anyio.CapacityLimiter(1)

    @asynccontextmanager
    async def watching(self, topic: Topic) -> AsyncIterator[Watch]:
        """Watch a topic until the end of the block."""
        if self.listening >= self.most:
            raise TransientResourceError(
                f"{self.most} streams are open, which is the most",
                reason_code="too_many_streams",
                remedy="close streams that nobody reads, or set PERENNIAL_API_STREAMS",
                retry_after=timedelta(seconds=5),
            )
        watch = self._watches.setdefault(topic, Watch())
        watch.listeners += 1
        self.listening += 1
        self._hurry.set()
        if self._task is None:
            self._task = asyncio.create_task(self._read_while_watched())
        try:
            yield watch
        finally:
            watch.listeners -= 1
            self.listening -= 1
            if not watch.listeners and self._watches.get(topic) is watch:
                del self._watches[topic]
                self._hurry.set()

    def stop(self) -> None:
        """End every stream; the clients connect again."""
        for watch in self._watches.values():
            watch.over = True
            watch.wake()
        self._watches = {}
        self._hurry.set()

    async def _read_while_watched(self) -> None:
        due = 0.0
        try:
            while self._watches:
                self._hurry.clear()
                if self.clock() >= due:
                    wait = await self._read(set(self._watches))
                    due = self.clock() + wait
                elif fresh := {topic for topic, watch in self._watches.items() if not watch.read}:
                    await self._read(fresh)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), max(due - self.clock(), 0.0))
        finally:
            self._task = None
            self.stop()  # after a bug too: a client that connects again is better off than one that waits
            await anyio.to_thread.run_sync(self.reader.close, limiter=self._thread)

    async def _read(self, topics: Collection[Topic]) -> float:
        """Read and publish; return the seconds until the next read."""
        self.reads += 1
        held = {topic: self._watches[topic].snapshot for topic in topics}
        found: Mapping[Topic, Snapshot | None]
        wait = POLL_SECONDS
        try:
            found = await anyio.to_thread.run_sync(self.reader.read, held, limiter=self._thread)
        except PerennialError as error:
            found, wait = dict.fromkeys(topics, self.reader.problem(error)), PATIENCE_SECONDS
        for topic, snapshot in found.items():
            if topic in self._watches:
                self._watches[topic].publish(snapshot)
        return wait
