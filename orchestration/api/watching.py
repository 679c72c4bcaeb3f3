"""What is watched is read twice a second, once for all who watch it; each client is given the newest.

All of it is read together, but what takes long: that is read alone, beside the rest and less often.
A client holds no queue. When it is ready for more it gets the state of that moment, so a slow one misses what
lay between and holds nobody; its place ends with its connection. Nothing is read while nobody watches.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import anyio.to_thread

from domain.shared.error import PerennialError, TransientResourceError

POLL_SECONDS = 0.5
PATIENCE_SECONDS = 5.0
"""After a read that failed."""
SLOW_SECONDS = 0.05
"""What takes longer is read alone."""
SPACING = 10
"""What is read alone is read again after so many times as long as it took."""
AT_ONCE = 4
"""Topics that are read alone."""

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
    """Reads topics, in one thread at a time. There are several readers."""

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
    alone: bool = True
    """Whether it is read alone: at first nobody knows how long that takes."""
    due: float = 0.0
    """When it is to be read next; infinity while it is being read."""
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
        while not self.read:
            if self.over:
                raise TransientResourceError(
                    "the API stops, or cannot read what is watched",
                    reason_code="streams_stop",
                    remedy="connect again",
                    retry_after=timedelta(seconds=1),
                )
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

    open_reader: Callable[[], Reader]
    most: int
    """Clients at once."""
    clock: Callable[[], float] = time.monotonic
    listening: int = 0
    reads: int = 0
    _watches: dict[Topic, Watch] = field(default_factory=dict)
    _idle: list[Reader] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    _hurry: asyncio.Event = field(default_factory=asyncio.Event)

    @cached_property
    def _thread(self) -> anyio.CapacityLimiter:
        """Of what is read together: the threads of requests may all be busy."""
        return anyio.CapacityLimiter(1)

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        """Of what is read alone."""
        return anyio.CapacityLimiter(AT_ONCE)

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
        reading: set[asyncio.Task[None]] = set()

        def ended(task: asyncio.Task[None]) -> None:
            reading.discard(task)
            self._hurry.set()

        try:
            async with asyncio.TaskGroup() as reads:
                while self._watches or reading:
                    self._hurry.clear()
                    for due in self._due():
                        task = reads.create_task(self._read(due))
                        reading.add(task)
                        task.add_done_callback(ended)
                    next_due = min((watch.due for watch in self._watches.values()), default=math.inf)
                    wait = None if next_due == math.inf else max(next_due - self.clock(), 0.0)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._hurry.wait(), wait)
        finally:
            self._task = None
            self.stop()  # after a bug too: a client that connects again is better off than one that waits
            for reader in self._idle:
                await anyio.to_thread.run_sync(reader.close, limiter=self._thread)
            self._idle.clear()

    def _due(self) -> Iterator[dict[Topic, Watch]]:
        """What is to be read now: everything quick together, and each of the others alone."""
        now = self.clock()
        due = {topic: watch for topic, watch in self._watches.items() if watch.due <= now}
        for watch in due.values():
            watch.due = math.inf
        if together := {topic: watch for topic, watch in due.items() if not watch.alone}:
            yield together
        yield from ({topic: watch} for topic, watch in due.items() if watch.alone)

    async def _read(self, watches: Mapping[Topic, Watch]) -> None:
        """Read these together, publish them, and say when they are read next."""
        self.reads += 1
        held = {topic: watch.snapshot for topic, watch in watches.items()}
        alone = any(watch.alone for watch in watches.values())
        read = partial(self._timed, held)
        found, took = await anyio.to_thread.run_sync(read, limiter=self._threads if alone else self._thread)
        failed = any(snapshot and snapshot.event == "problem" for snapshot in found.values())
        slow, now = took > SLOW_SECONDS and not failed, self.clock()
        space = PATIENCE_SECONDS if failed else POLL_SECONDS
        together = (now // space + 1) * space  # the same moment for all, so that they are read together
        for topic, watch in watches.items():
            # Whose fault it is that many together took long is seen when each is read alone.
            watch.alone = slow
            watch.due = max(together, now + SPACING * took) if slow and alone else together
            if topic in found:
                watch.publish(found[topic])

    def _timed(self, held: Mapping[Topic, Snapshot | None]) -> tuple[Mapping[Topic, Snapshot | None], float]:
        """Read with a reader that nobody else uses now; return the seconds that it took, too."""
        reader = self._idle.pop() if self._idle else self.open_reader()
        begun = self.clock()
        try:
            found = reader.read(held)
        except PerennialError as error:
            found = dict.fromkeys(held, reader.problem(error))
        finally:
            self._idle.append(reader)
        return found, self.clock() - begun
