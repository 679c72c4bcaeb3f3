"""What passes between a use case that builds partitions and `Materialization`, which writes them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.parallel import one_ahead
from domain.shared.state import NOTHING, PartitionState
from domain.shared.table import ABSENT, Table, Version

if TYPE_CHECKING:
    import pyarrow as pa

    from domain.shared.work import Work
    from resources.lake.partition_writer import WrittenPartition
    from resources.ledger.provenance import PartitionRecord

ROWS_AT_ONCE = 2_000_000
"""Rows of several partitions that share a commit, where partitions are built one at a time."""

log = logging.getLogger("perennial.materialize")


def state_of(version: Version, record: PartitionRecord | None) -> PartitionState:
    """Return the state of a partition: what the lake holds now, and what was recorded of it."""
    if record is None:
        return PartitionState(version=version)
    return PartitionState(
        version=version,
        recorded=Version(record.rows, record.digest) if record.rows else ABSENT,
        seen_count=record.seen_count,
        committed_at=record.committed_at,
        checked_at=record.checked_at,
        inputs=record.inputs,
        detail=record.detail,
    )


class InputMissing(TransientResourceError):
    """An input of the partition is missing or not whole; the plan wants the partition again when it is."""

    reason_code = "input_missing"
    remedy = "materialise its upstream tables; the domain's sensor does it by itself"
    retry_in_run = False


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run: the first, or a repetition by the op's retry policy after one of the `waits`."""

    run_id: str
    retry: int = 0
    waits: Sequence[float] = ()
    only_needed: bool = False
    """Leave alone what is complete: a backfill over days of which some are there."""
    accept_thinner: bool = False
    """Replace a whole day by an answer with fewer rows, as a person wants it so."""
    dispatch_id: str | None = None
    """The dispatch that the run was started for; None of a run that a person started."""

    @property
    def final(self) -> bool:
        return self.retry >= len(self.waits)

    @property
    def wait(self) -> float:
        return 0.0 if self.final else self.waits[self.retry]


@dataclass(frozen=True)
class Figures:
    """What a partition adds up to, part by part, to be compared with what it added up to before."""

    unit: str
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Series:
    """Numbers in order, such as a number for each day: metadata that is shown as a chart with columns."""

    values: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class PartitionReport:
    """What happened to one partition in a run, for its event.

    committed: written now · earlier: written by an earlier pass of the same run, its event is there ·
    kept: whole already · closed: nothing is due on that day · refused: an answer came and was no data
    """

    table: Table
    partition: str
    outcome: Literal["committed", "earlier", "kept", "closed", "refused"]
    version: Version = ABSENT
    before: PartitionState = NOTHING
    snapshot_id: int | None = None
    seconds: float = 0.0
    attempts: int = 0
    reason: str = ""
    """Why the partition was written; of a refused one, why it was not."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    figures: Figures | None = None

    @property
    def seen_count(self) -> int:
        """How often in a row this same content was committed."""
        if self.outcome != "committed":
            return self.before.seen_count
        return self.before.seen_count + 1 if self.before.recorded == self.version else 1


Notify = Callable[[Sequence[PartitionReport]], None]
"""Takes what happened to some partitions, right after their commit."""


@dataclass(frozen=True)
class Request:
    """One leased partition. `optional`: a plan asked for it, and no person."""

    partition: str
    work: Work
    optional: bool

    def is_done(self, inputs: Mapping[str, str], *states: PartitionState) -> bool:
        """Whether what a slow reconcile asked for was written since, from these same inputs."""
        return self.optional and all(s.untouched and dict(s.inputs) == dict(inputs) for s in states)


@dataclass(frozen=True)
class Built:
    """The next content of one partition, and what it was made from."""

    partition: str
    frames: Mapping[str, pa.Table | WrittenPartition]
    """By the name of their table; written in this order."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Recorded with the partition, for the plan."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Shown to people."""
    figures: Mapping[str, Figures] = field(default_factory=dict)
    reason_code: str = ""
    """Of the completed work, where there is more to say than that it is complete."""
    seconds: float = 0.0
    merge: bool = False
    """Put the rows among those that are there, by their key, instead of replacing the partition."""
    carried: tuple[str, ...] = ()
    """Pipelines of content that is replaced before anything was made from it."""

    @property
    def num_rows(self) -> int:
        return sum(frame.num_rows for frame in self.frames.values())


@dataclass(frozen=True)
class NotBuilt:
    """Why a partition gets no new content: an `error`, or a reason to `skip` it; both if an error is to be
    raised and no attempt heals it."""

    partition: str
    error: Exception | None = None
    skip: str = ""


Batch = Sequence[Built | NotBuilt]
"""Partitions whose new content is committed in one snapshot of each table."""
Build = Callable[[Sequence[Request]], Generator[Batch, None, None]]


def one_at_a_time(
    requests: Sequence[Request], build: Callable[[Request], Built | NotBuilt]
) -> Generator[Batch, None, None]:
    """Partitions built one after another, as many together as may share a commit; the next are built while
    these are committed."""
    with one_ahead(_batches(requests, build)) as batches:
        yield from batches


def _batches(requests: Sequence[Request], build: Callable[[Request], Built | NotBuilt]) -> Iterator[Batch]:
    batch: list[Built | NotBuilt] = []
    rows = 0
    for request in requests:
        one = _tried(request, build)
        batch.append(one)
        rows += one.num_rows if isinstance(one, Built) else 0
        if rows >= ROWS_AT_ONCE:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _tried(request: Request, build: Callable[[Request], Built | NotBuilt]) -> Built | NotBuilt:
    """What was built; an error of one partition keeps no other from being built."""
    began = time.monotonic()
    try:
        one = build(request)
    except PerennialError as error:
        return NotBuilt(request.partition, error)
    except Exception as error:
        log.exception("%s", request.partition)
        return NotBuilt(request.partition, error)
    return replace(one, seconds=time.monotonic() - began) if isinstance(one, Built) else one
