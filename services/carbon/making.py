"""How a partition is made, whatever its table: held, built, committed, told, recorded, in this order.

A kill between any two of these leaves work that the next look finds and does again, to the same content.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from domain.carbon.jobs import KIND_OF
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.parallel import one_ahead
from domain.shared.table import Table, Version
from resources.lake.desk import Staged
from resources.lake.error import DataUnavailable
from resources.ledger.provenance import PartitionRecord
from resources.ledger.standing import DONE_MEANWHILE
from services.carbon.figures import figures
from services.carbon.service import CarbonService, YearLocked

if TYPE_CHECKING:
    from resources.lake.client import Commit
    from resources.ledger.lease import Lease

log = logging.getLogger("perennial.carbon")

ROWS_AT_ONCE = 2_000_000
"""Rows of several partitions that share a commit."""


@dataclass(frozen=True)
class Built:
    """What a partition shall hold, and from what it was made."""

    frames: Mapping[str, pa.Table | Staged]
    """By the name of their table."""
    inputs: Mapping[str, str]
    detail: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """For people: what changed."""
    carried: tuple[str, ...] = ()
    """Chains behind what is replaced now, that nothing has been made from yet; the newest of them."""
    shorter: Mapping[str, pa.Table] = field(default_factory=dict)
    """By table, fewer rows that come to the same figures as its frame."""


@dataclass(frozen=True)
class Made:
    """What became of one partition of one table."""

    table: Table
    partition: str
    version: Version
    changed: bool
    snapshot_id: int | None
    seconds: float
    metadata: Mapping[str, Any]
    figures: Mapping[str, float]
    """What it comes to, part by part."""
    before: Mapping[str, float] | None
    """The same of the time before; None if it was not made before, or nobody kept them."""


Build = Callable[[str, int], "Built | None"]
"""Given a partition and the number of the work it is made for; None if there is nothing to make it from."""
Tell = Callable[[Sequence[Made]], None]


class PartlyDone(PerennialError):
    """Some partitions of a run could not be made. The ledger knows each, and why."""

    reason_code = "partly_done"


def make(
    carbon: CarbonService, table: Table, partitions: Sequence[str], run_id: str, tell: Tell, build: Build
) -> None:
    """Make these partitions. One that cannot be made is put off or given up, and the others are made."""
    failures: list[PerennialError] = []
    keys = [f"{table.table}:{p}" for p in partitions]
    with carbon.ledger.lease(KIND_OF[table.table], keys, run_id) as lease:
        failures += [YearLocked(lock) for lock in lease.locked.values()]
        wanted = _wanted(carbon, lease)
        with one_ahead(_batches(lease, wanted, build, failures)) as batches:
            for batch in batches:
                if writable := _writable(carbon, lease, batch, failures):
                    _commit(carbon, lease, writable, run_id, tell)
    if failures:
        more = f" (and {len(failures) - 1} more partitions)" if len(failures) > 1 else ""
        raise PartlyDone(f"{failures[0].message}{more}", remedy=failures[0].remedy) from failures[0]


@dataclass(frozen=True)
class _Ready:
    key: str
    partition: str
    built: Built
    began: float


def _wanted(carbon: CarbonService, lease: Lease) -> list[str]:
    """What is to be done of it. A look may be slow, and ask for what was done since it saw it due: that is
    not done again. What a person asked for is."""
    by_a_person = carbon.ledger.asked_for([row.id for row in lease.work.values()])
    asked = {key for key, row in lease.work.items() if row.dispatch_id is None or row.id in by_a_person}
    healthy: set[str] = set()
    if len(asked) < len(lease.keys):
        healthy = {v.key for v in carbon.plan().verdicts if v.state == "healthy"}
    done = [key for key in lease.keys if key in healthy and key not in asked]
    for key in done:
        lease.skip(key, DONE_MEANWHILE)
    return [key for key in lease.keys if key not in done]


def _batches(
    lease: Lease, wanted: Sequence[str], build: Build, failures: list[PerennialError]
) -> Iterator[list[_Ready]]:
    """Built partitions, as many as may share a commit."""
    batch: list[_Ready] = []
    rows = 0
    for key in wanted:
        partition, began = key.split(":", 1)[1], time.monotonic()
        try:
            built = build(partition, lease.work[key].id)
        except TransientResourceError as error:
            lease.defer(key, error)
            failures.append(error)
            continue
        except PerennialError as error:
            lease.fail(key, error)
            failures.append(error)
            continue
        if built is None:
            lease.skip(key, "nothing_to_do")
            continue
        batch.append(_Ready(key, partition, built, began))
        rows += sum(frame.num_rows for frame in built.frames.values())
        if rows >= ROWS_AT_ONCE:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _writable(
    carbon: CarbonService, lease: Lease, batch: Sequence[_Ready], failures: list[PerennialError]
) -> list[_Ready]:
    """Without those whose rows are there and cannot be read now: the lake would refuse all that share their
    commit."""
    unavailable: dict[str, str] = {}
    for name in batch[0].built.frames:
        held = carbon.lake.versions(name, [one.partition for one in batch])
        unavailable |= {p: version.unavailable for p, version in held.items() if version.unavailable}
    for one in batch:
        if one.partition in unavailable:
            failures.append(DataUnavailable(unavailable[one.partition]))
            lease.defer(one.key, failures[-1])
    return [one for one in batch if one.partition not in unavailable]


def _commit(carbon: CarbonService, lease: Lease, batch: Sequence[_Ready], run_id: str, tell: Tell) -> None:
    made: list[Made] = []
    records = carbon.provenance.records(list(batch[0].built.frames), [one.partition for one in batch])
    for name in batch[0].built.frames:
        table = carbon.lake.tables[name]
        frames = [one.built.frames[name] for one in batch]
        before = carbon.lake.versions(table.name, [one.partition for one in batch])
        commit = _into_the_lake(carbon, table, [one.partition for one in batch], frames, lease)
        made += [
            Made(
                table=table,
                partition=one.partition,
                version=commit.versions[one.partition],
                changed=commit.versions[one.partition] != before[one.partition],
                snapshot_id=commit.snapshot_id,
                seconds=time.monotonic() - one.began,
                metadata=one.built.metadata,
                figures=figures(table, one.built.shorter.get(name, one.built.frames[name])),
                before=_figures_before(records.get((name, one.partition))),
            )
            for one in batch
        ]
    tell(made)
    for one in batch:
        carbon.ledger.pipelines.hand_on(lease.work[one.key])
    built = {one.partition: one.built for one in batch}
    carbon.provenance.record(
        [
            PartitionRecord(
                table_name=m.table.name,
                partition=m.partition,
                rows=m.version.rows,
                digest=m.version.digest,
                snapshot_id=m.snapshot_id,
                inputs=built[m.partition].inputs,
                detail=_detail(carbon, lease, m, built[m.partition]),
                run_id=run_id,
            )
            for m in made
        ]
    )
    for one in batch:
        lease.complete(one.key)


def _into_the_lake(
    carbon: CarbonService,
    table: Table,
    partitions: Sequence[str],
    frames: Sequence[pa.Table | Staged],
    lease: Lease,
) -> Commit:
    if staged := [frame for frame in frames if isinstance(frame, Staged)]:
        return carbon.lake.put(table.name, staged, guard=lease.check)
    rows = pa.concat_tables([f.select(table.schema.names) for f in frames if not isinstance(f, Staged)])
    return carbon.lake.replace_range(table.name, partitions, rows, allow_empty=True, guard=lease.check)


def _figures_before(record: PartitionRecord | None) -> Mapping[str, float] | None:
    """As recorded, and not as the lake has them: what is mended now may not be readable."""
    return record.detail.get("figures") if record is not None else None


def _detail(carbon: CarbonService, lease: Lease, made: Made, built: Built) -> dict[str, Any]:
    """With the chains this content belongs to, for whatever is made from it."""
    known = dict(built.detail)
    work = lease.work.get(f"{made.table.table}:{made.partition}")
    mine = carbon.ledger.pipelines.of([work.id]).get(work.id, ()) if work is not None else ()
    return known | {"pipelines": sorted({*mine, *built.carried}), "figures": dict(made.figures)}
