"""Workers that stop wherever others could come in between: real lake, real ledger, one step at a time.

Each worker is a thread, and only ever one of them runs: from where it stopped to the next such place. One
that is never let go on again is dead to all others: no lease of it is renewed, nothing it held is given back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import pyarrow as pa

from domain.carbon.observed import Observed
from resources.lake.client import Commit, Lake
from resources.ledger.provenance import PartitionRecord, Provenance
from resources.objects.staging import Staging
from services.carbon.service import CarbonService

_here = threading.local()


class Dies(BaseException):
    """Ends the thread of a worker that nobody lets go on."""


def stop(where: str) -> None:
    """Where a worker waits to be let go on; for anybody else nothing."""
    worker: Worker | None = getattr(_here, "worker", None)
    if worker is not None:
        worker.stop(where)


class Worker:
    """Some work under a name. `where` is the last place where it stopped."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name = name
        self.where = "not begun"
        self.run_id = ""
        self.dead = False
        self.error: BaseException | None = None
        self._work = work
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return self._ended

    def step(self) -> None:
        self._go.release()
        self._stopped.acquire()

    def bury(self) -> None:
        if not self._ended:
            self.dead = True
            self.step()
        self._thread.join()

    def stop(self, where: str) -> None:
        self.where = where
        self._stopped.release()
        self._go.acquire()
        if self.dead:
            raise Dies

    def _run(self) -> None:
        _here.worker = self
        self._go.acquire()
        try:
            if not self.dead:
                self._work()
        except BaseException as error:  # noqa: BLE001 - the model judges it
            self.error = error
        self._ended = True
        self._stopped.release()


@dataclass
class Clock:
    """Both clocks: they advance only when set, and by a tick at each reading."""

    now: datetime = datetime(2026, 11, 18, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)
        return self.now


class SteppedLake(Lake):
    def query(self, *arguments: Any, **named: Any) -> pa.Table:
        stop("before it reads")
        found = super().query(*arguments, **named)
        stop("has read")
        return found

    def replace(self, *arguments: Any, **named: Any) -> Commit:
        return _committed(super().replace, *arguments, **named)

    def put(self, *arguments: Any, **named: Any) -> Commit:
        return _committed(super().put, *arguments, **named)


def _committed(commit: Callable[..., Commit], *arguments: Any, **named: Any) -> Commit:
    stop("before it commits")
    made = commit(*arguments, **named)
    stop("committed")
    return made


class SteppedStaging(Staging):
    def keep(self, pipeline_id: str, original: bytes, rows: pa.Table) -> None:
        super().keep(pipeline_id, original, rows)
        stop("kept, and not noted")


class SteppedProvenance(Provenance):
    __slots__ = ()

    def record(
        self,
        entries: Sequence[PartitionRecord],
        *,
        revision: bool = False,
        parent_snapshot_id: int | None = None,
    ) -> None:
        stop("before it records")
        super().record(entries, revision=revision, parent_snapshot_id=parent_snapshot_id)
        stop("recorded, and not completed")


@dataclass
class SteppedCarbon(CarbonService):
    @property
    def provenance(self) -> Provenance:
        return SteppedProvenance(self.ledger.engine, self.ledger.clock)

    def observe(self) -> Observed:
        found = super().observe()
        stop("observed")
        return found

    def observe_partitions(self, partitions: Mapping[str, Sequence[str]]) -> Observed:
        found = super().observe_partitions(partitions)
        stop("observed")
        return found


@dataclass
class Crew:
    """All who are at work. Dead ones are kept to be buried."""

    alive: list[Worker] = field(default_factory=list)
    dead: list[Worker] = field(default_factory=list)

    def hire(self, name: str, work: Callable[[], None]) -> Worker:
        self.alive.append(Worker(name, work))
        return self.alive[-1]

    def step(self, pick: int, times: int = 1) -> Worker | None:
        """Let one of them go on, some stops at most; gives it back if it ended."""
        worker = self.alive[pick % len(self.alive)]
        for _ in range(times):
            worker.step()
            if worker.ended:
                self.alive.remove(worker)
                return worker
        return None

    def die(self, pick: int) -> Worker:
        worker = self.alive.pop(pick % len(self.alive))
        self.dead.append(worker)
        return worker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self.alive, *self.dead):
            worker.bury()
