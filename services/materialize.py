"""How partitions of a lake table are written: lease, build, commit, event, record, complete.

Every writer of whole partitions goes through `Materialization`; who adds rows to a partition takes the same
steps. A kill between any two of these steps leaves work that the next reconcile finds and does again, to the
same content. The event comes before the record: a recorded partition is healthy, and nobody would report it
later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa

from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.state import FIGURES, PIPELINES, PartitionState
from domain.shared.table import ABSENT, Table, Version
from domain.shared.work import split_key
from resources.lake.error import DataUnavailable
from resources.lake.partition_writer import WrittenPartition
from resources.lake.write import Commit
from resources.ledger.model import REQUESTED
from resources.ledger.outcome import cause_of
from resources.ledger.provenance import PartitionRecord, Provenance
from services.partitions import (
    Attempt,
    Batch,
    Build,
    Built,
    NotBuilt,
    Notify,
    PartitionReport,
    Request,
    state_of,
)

if TYPE_CHECKING:
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger
    from resources.ledger.lease import Lease


progress = logging.getLogger("perennial.progress")
waiting = logging.getLogger("perennial.progress.wait")


class PartlyDone(PerennialError):
    """Some partitions of a run were put off or given up. The ledger knows each, and why."""

    reason_code = "partly_done"


@dataclass
class Materialization:
    """What one pass of a run does to partitions of the tables that one asset writes.

    The first table names the work. A partition that cannot be built is put off or given up in the ledger, and
    the others are written.
    """

    lake: Lake
    ledger: Ledger
    provenance: Provenance
    kind: str
    tables: Sequence[Table]
    this: Attempt
    report: Notify
    source: str = ""
    """The call that rows come from."""
    revisions: bool = False
    """Whether content that changes is a revision of the source's."""
    allow_empty: bool = True
    pipelines: bool = False
    """Whether the work belongs to pipelines, which its content is recorded with."""
    committed: dict[str, Version] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)
    """By partition, what was put off or given up in the ledger."""
    before: dict[tuple[str, str], PartitionState] = field(default_factory=dict)
    """By table and partition, what was there when the work was leased."""
    later: dict[str, TransientResourceError] = field(default_factory=dict)
    """What another pass of this run tries again."""

    def run(self, partitions: Sequence[str], build: Build) -> None:
        """Write these partitions. What is raised at the end names the first that was not written."""
        retry_in = None if self.this.final else timedelta(seconds=self.this.wait)
        keys = [self._key(p) for p in partitions]
        with self.ledger.lease(self.kind, keys, self.this.run_id, retry_in=retry_in) as lease:
            self._take_over(lease)
            requests = self._requests(lease, self._readable(lease))
            self._show_progress(len(requests))
            with closing(build(requests)) as batches:
                for batch in batches:
                    self._write(lease, batch)
                    self._show_progress(len(requests))
            if self.later:
                raise self._another_pass()
        self._raise_failures(len(partitions))

    def _show_progress(self, of: int) -> None:
        if of > 1:
            done = len(self.committed) + len(self.failures)
            progress.info("%s: %d of %d partitions", self._name, done, of)

    @property
    def _name(self) -> str:
        return self.tables[0].table

    def _key(self, partition: str) -> str:
        return f"{self._name}:{partition}"

    def _take_over(self, lease: Lease) -> None:
        """What earlier passes of this run did, and what nobody may do now."""
        if done := [split_key(key)[1] for key in lease.done]:
            self.report(self._earlier(done))
        for key, row in lease.settled.items():
            words = (row.error or row.reason_code).splitlines()[0]
            self.failures[split_key(key)[1]] = PartlyDone(words, reason_code=row.reason_code)
        for key, error in lease.refused.items():
            self.failures[split_key(key)[1]] = error

    def _earlier(self, partitions: Sequence[str]) -> list[PartitionReport]:
        table = self.tables[0]
        return [
            PartitionReport(
                table, p, "earlier", Version(r.rows, r.digest), state_of(ABSENT, r), detail=r.detail
            )
            for (_, p), r in self.provenance.records([table.name], partitions).items()
        ]

    def _readable(self, lease: Lease) -> list[str]:
        """The leased partitions, without those whose rows are there and cannot be read now: these wait, as
        the lake would refuse all that share their commit."""
        leased = sorted(split_key(key)[1] for key in lease.keys)
        names = [table.name for table in self.tables]
        records = self.provenance.records(names, leased)
        held = self.lake.holdings(dict.fromkeys(names, leased))
        self.before = {
            (n, p): state_of(v, records.get((n, p))) for n, of in held.items() for p, v in of.items()
        }
        unavailable = {p: v.unavailable for of in held.values() for p, v in of.items() if v.unavailable}
        for partition, why in unavailable.items():
            self._refuse(lease, NotBuilt(partition, DataUnavailable(why)))
        return [p for p in leased if p not in unavailable]

    def _requests(self, lease: Lease, partitions: Sequence[str]) -> list[Request]:
        rows = {p: lease.work[self._key(p)] for p in partitions}
        dispatched = [row.id for row in rows.values() if row.dispatch_id is not None]
        asked = self.ledger.requested_by_person(dispatched) if dispatched else frozenset()
        return [
            Request(p, row, row.dispatch_id is not None and row.id not in asked) for p, row in rows.items()
        ]

    def _refuse(self, lease: Lease, one: NotBuilt) -> None:
        """Answer for a partition that was not built: another pass of this run, a later run, or a person."""
        key, error = self._key(one.partition), one.error
        if self.source and _another_pass_may_help(error):
            if not self.this.final:
                self.later[one.partition] = error
                return
            # The words that people search for.
            error = _reworded(error, f"{self.source} failed after {self.this.retry} retries: {error.message}")
        if error is not None:
            self.failures[one.partition] = error
        if one.skip or error is None:
            lease.skip(key, one.skip)
        elif isinstance(error, PerennialError) and not isinstance(error, TransientResourceError):
            lease.fail(key, error)
        else:
            lease.defer(key, error)

    def _write(self, lease: Lease, batch: Batch) -> None:
        built = []
        for one in batch:
            if isinstance(one, NotBuilt):
                self._refuse(lease, one)
            else:
                built.append(one)
        if built:
            self._commit(lease, built)

    def _commit(self, lease: Lease, built: Sequence[Built]) -> None:
        began = time.monotonic()
        commits = {name: self._replace(self.lake.tables[name], built, lease) for name in built[0].frames}
        each = (time.monotonic() - began) / len(built)
        reports = [
            self._reported(name, commit, one, lease, one.seconds + each)
            for name, commit in commits.items()
            for one in built
        ]
        self.report(reports)
        self._record(lease, built, reports, {name: commit.parent_id for name, commit in commits.items()})
        for one in built:
            lease.complete(self._key(one.partition), one.reason_code)
            self.committed[one.partition] = commits[self.tables[0].name].versions[one.partition]
        # Writes the answers: a killed run must not leave finished work behind as unfinished.
        lease.check()

    def _replace(self, table: Table, built: Sequence[Built], lease: Lease) -> Commit:
        frames = [one.frames[table.name] for one in built]
        partitions = [one.partition for one in built]
        if written := [frame for frame in frames if isinstance(frame, WrittenPartition)]:
            return self.lake.put(table.name, written, guard=lease.check)
        rows = pa.concat_tables(
            [f.select(table.schema.names) for f in frames if not isinstance(f, WrittenPartition)]
        )
        if built[0].merge:
            if rows.num_rows:
                commit = self.lake.merge(table.name, rows, guard=lease.check)
            else:
                commit = Commit(None, None, {}, False)
            return replace(commit, versions=self.lake.versions(table.name, partitions))
        return self.lake.replace(
            table.name, partitions, rows, allow_empty=self.allow_empty, guard=lease.check
        )

    def _reported(
        self, name: str, commit: Commit, one: Built, lease: Lease, seconds: float
    ) -> PartitionReport:
        work = lease.work[self._key(one.partition)]
        return PartitionReport(
            table=self.lake.tables[name],
            partition=one.partition,
            outcome="committed",
            version=commit.versions[one.partition],
            before=self.before[name, one.partition],
            snapshot_id=commit.snapshot_id,
            seconds=seconds,
            attempts=work.attempts + self.this.retry,
            reason=work.reason_code or REQUESTED,
            inputs=one.inputs,
            detail=one.detail,
            metadata=one.metadata,
            figures=one.figures.get(name),
        )

    def _record(
        self,
        lease: Lease,
        built: Sequence[Built],
        reports: Sequence[PartitionReport],
        parents: Mapping[str, int | None],
    ) -> None:
        """Note what was committed. Content that replaced other content of the source's is a revision."""
        chains = self._chains(lease, built)
        records: dict[int | None, list[PartitionRecord]] = {}
        for one in reports:
            detail = {"seconds": round(one.seconds, 3), **one.detail, **chains.get(one.partition, {})}
            if one.figures is not None:
                detail[FIGURES] = dict(one.figures.parts)
            record = PartitionRecord(
                table_name=one.table.name,
                partition=one.partition,
                rows=one.version.rows,
                digest=one.version.digest,
                snapshot_id=one.snapshot_id,
                inputs=one.inputs,
                detail=detail,
                run_id=self.this.run_id,
            )
            # The snapshot just before this commit shows the old content, unless somebody else wrote to the
            # table since; then only the snapshot that first had it does.
            shows_old = parents[one.table.name] if self.revisions and one.before.untouched else None
            records.setdefault(shows_old, []).append(record)
        for shows_old, noted in records.items():
            self.provenance.record(noted, revision=self.revisions, parent_snapshot_id=shows_old)

    def _chains(self, lease: Lease, built: Sequence[Built]) -> dict[str, dict[str, Any]]:
        """By partition, the pipelines that its content belongs to, for whatever is made from it."""
        if not self.pipelines:
            return {}
        rows = {one.partition: lease.work[self._key(one.partition)] for one in built}
        for row in rows.values():
            self.ledger.pipelines.inherit_unfinished(row)
        of = self.ledger.pipelines.of([row.id for row in rows.values()])
        return {
            one.partition: {PIPELINES: sorted({*of.get(rows[one.partition].id, ()), *one.carried})}
            for one in built
        }

    def _another_pass(self) -> TransientResourceError:
        partition, error = next(iter(self.later.items()))
        which = partition if len(self.later) == 1 else f"{len(self.later)} partitions from {partition}"
        waiting.info("%s again in %.0f s", f"{self.source}: {which}", self.this.wait)
        passes = f"pass {self.this.retry + 1}, again in {self.this.wait:g} s"
        return _reworded(error, f"{self.source}: {error.message} ({which}; {passes})")

    def _raise_failures(self, asked: int) -> None:
        if not self.failures:
            return
        first = next(iter(self.failures.values()))
        if asked == 1:
            raise first
        cause = cause_of(first)
        count = f"{len(self.failures)} of {asked} partitions not committed"
        words = f"{self._name}: {count}; {cause.error.splitlines()[0]}"
        remedy = first.remedy if isinstance(first, PerennialError) else ""
        raise PartlyDone(words, reason_code=cause.reason_code, remedy=remedy) from first


def _reworded(error: TransientResourceError, text: str) -> TransientResourceError:
    again = TransientResourceError(text, reason_code=error.reason_code, remedy=error.remedy)
    again.__cause__ = error
    return again


def _another_pass_may_help(error: Exception | None) -> TypeGuard[TransientResourceError]:
    """Seconds help a source that is busy; a disk or an object store that fails is left to a later run."""
    transient = isinstance(error, TransientResourceError) and error.retry_in_run
    return transient and not isinstance(error, DataUnavailable)
