"""The carbon domain put together: its tables, its ledger, its staged files. No Dagster here.

Assets, sensors and the command all work through one `CarbonService`, so they see the same state and follow
the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from domain.carbon.catalogue import Catalogue
from domain.carbon.factors import digests
from domain.carbon.feeds import FEED_TABLES, FeedChange, FeedRead
from domain.carbon.jobs import ALL_KINDS, KIND_OF, KINDS
from domain.carbon.observed import CurrentUpload, Observed
from domain.carbon.plan import YEAR_OUTSIDE, needs_uploads, plan
from domain.carbon.tables import FACTORS, TABLES, UNITS, year_of
from domain.shared.clock import Clock
from domain.shared.error import InfrastructureError, InvalidInput, TransientResourceError
from domain.shared.hashing import digest
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, Table, Version
from domain.shared.verdict import Plan, Verdict, waiting
from domain.shared.years import YEARS
from resources.objects.staging import LOST
from services.carbon.reindex import not_indexed
from services.carbon.store import CarbonStore, YearLock, YearLocked, gated
from services.materialize import Materialization
from services.partitions import Attempt, Built, NotBuilt, Notify, Request, one_at_a_time, state_of

if TYPE_CHECKING:
    from resources.feeds.client import FeedClient
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger
    from resources.ledger.provenance import PartitionRecord, Provenance
    from resources.objects.staging import Staging
    from services.carbon.upload_store import Upload


FEED_RECORDS = {table: f"carbon.{table}" for table in FEED_TABLES.values()}
"""Under these names the ledger keeps what was read of applications."""
DIGESTS = "digests"
"""Detail of a year's factors: by type, a digest of what its calculation uses. A pass reads no factor then."""


def outside(years: range) -> str:
    return f"is outside PERENNIAL_CARBON_YEARS, {years[0]} to {years[-1]}"


def freshness_of(origin: str) -> str:
    """The name of an application's freshness row."""
    return f"carbon.{origin}"


@dataclass
class CarbonService:
    catalogue: Catalogue
    lake: Lake
    ledger: Ledger
    staging: Staging
    feeds: Mapping[str, FeedClient] = field(default_factory=dict)
    """Feeds of other applications, by what their entries are to us."""
    inbox_folder: Path = Path()
    years: range = YEARS
    """The years that have partitions."""
    store: CarbonStore = field(init=False, repr=False)
    _digests: dict[int, tuple[Version, dict[str, str]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.ledger = self.ledger.with_kinds(gated(ALL_KINDS))
        self.store = CarbonStore(self.ledger.engine, self.ledger.clock)

    @property
    def clock(self) -> Clock:
        return self.ledger.clock

    @property
    def provenance(self) -> Provenance:
        return self.ledger.provenance

    def observe(self) -> Observed:
        """Everything the plan judges: versions and facts, which are kept. No row is read."""
        work = {row.key: row.status for row in self.ledger.current(tuple(k.name for k in KINDS))}
        uploads = self.store.uploads.current()
        states = self.states(TABLES)
        seen = Observed(
            states=states,
            uploads=uploads,
            factor_digests=self._factor_digests(states),
            locked={year: lock.reason for year, lock in self.store.year_locks.held().items()},
            work=work,
            feed_changes=self._feed_changes(),
            feed_reads=self._feed_reads(),
            silent=self._silent(),
            now=self.clock(),
            feeds=digest(sorted(feed.fingerprint() for feed in self.feeds.values())),
        )
        if not needs_uploads(self.catalogue, seen):
            return seen
        return replace(seen, not_indexed=len(not_indexed(self.staging, self.store)))

    def observe_partitions(self, partitions: Mapping[str, Sequence[str]]) -> Observed:
        """Observe some partitions, by the name of their table: enough for what is made from them."""
        named = {p for of in partitions.values() for p in of}
        records = self.provenance.records(list(partitions), named)
        states = self._states(self.lake.holdings(partitions), records)
        return Observed(states=states, factor_digests=self._factor_digests(states))

    def observe_intake(self, partitions: Mapping[str, Sequence[str]]) -> Observed:
        """Observe some partitions and the uploads: enough for what is made of them."""
        seen = self.observe_partitions(partitions)
        missing = len(not_indexed(self.staging, self.store))
        return replace(seen, uploads=self.store.uploads.current(), not_indexed=missing)

    def materialize(
        self,
        tables: Sequence[Table],
        partitions: Sequence[str],
        this: Attempt,
        report: Notify,
        build: Callable[[Request], Built | NotBuilt],
    ) -> None:
        """Write partitions of the tables of one asset, each as `build` makes it; of a run that was dispatched
        those it was dispatched for."""
        wanted = self.sent(this.dispatch_id, tables[0].table, partitions)
        Materialization(
            self.lake,
            self.ledger,
            self.provenance,
            KIND_OF[tables[0].table],
            tables,
            this,
            report,
            pipelines=True,
        ).run(wanted, lambda requests: one_at_a_time(requests, build))

    def _feed_changes(self) -> list[FeedChange]:
        """Of the applications that there are now; what was read of others stays as it is."""
        if not self.feeds:
            return []
        return [one for one in self.store.feed_contents.all() if one.source in self.feeds]

    def _silent(self) -> dict[str, datetime | None]:
        """Of the applications that there are now, those of which nobody knows what they hold."""
        if not self.feeds:
            return {}
        freshness = {row.source: row for row in self.ledger.freshness.all("carbon")}
        rows = {origin: freshness.get(freshness_of(origin)) for origin in self.feeds}
        return {
            origin: None if row is None else row.last_success
            for origin, row in rows.items()
            if row is None or row.fails
        }

    def _feed_reads(self) -> dict[str, FeedRead]:
        records = self.provenance.records(list(FEED_RECORDS.values()))
        return {
            f"{name.partition('.')[2]}:{p}": FeedRead(record.inputs, record.detail.get("refused", {}))
            for (name, p), record in records.items()
        }

    def plan(self) -> Plan:
        return self.plan_of(self.observe())

    def plan_of(self, seen: Observed) -> Plan:
        found = plan(self.catalogue, seen)
        return Plan(tuple(self._inside(verdict) for verdict in found.verdicts))

    def _inside(self, verdict: Verdict) -> Verdict:
        """A partition that Dagster does not have waits: no run could make it."""
        if not verdict.due or year_of(verdict.partition) in self.years:
            return verdict
        return waiting(verdict, outside(self.years), YEAR_OUTSIDE)

    def states(self, tables: Sequence[Table]) -> dict[tuple[str, str], PartitionState]:
        """Every partition of these tables that is or was: what the lake holds beside what was recorded."""
        records = self.provenance.records([t.name for t in tables])
        recorded: dict[str, list[str]] = {t.name: [] for t in tables}
        for name, partition in records:
            recorded[name].append(partition)
        return self._states(self.lake.holdings(recorded, and_present=True), records)

    def _states(
        self, held: Mapping[str, Mapping[str, Version]], records: Mapping[tuple[str, str], PartitionRecord]
    ) -> dict[tuple[str, str], PartitionState]:
        return {
            (self.lake.tables[name].table, p): state_of(version, records.get((name, p)))
            for name, of in held.items()
            for p, version in of.items()
        }

    def _factor_digests(
        self, states: Mapping[tuple[str, str], PartitionState]
    ) -> dict[int, Mapping[str, str]]:
        """Of every year whose factors can be read; a year without factors has none of any type."""
        found: dict[int, Mapping[str, str]] = {}
        years = {year_of(p) for _, p in states}
        for year in years:
            state = states.get((FACTORS.table, str(year)), PartitionState())
            if not state.version.readable or (state.recorded is not None and not state.untouched):
                continue
            found[year] = self._digests_of(year, state)
        return found

    def _digests_of(self, year: int, state: PartitionState) -> Mapping[str, str]:
        """As recorded with the content that is there. Of content that nobody recorded, or that was recorded
        before they were, they are read of the factors."""
        recorded: Mapping[str, str] | None = state.detail.get(DIGESTS) if state.untouched else None
        if recorded is not None or state.version == ABSENT:
            return recorded or {}
        known = self._digests.get(year)
        if known is None or known[0] != state.version:
            known = self._digests[year] = state.version, digests(self.factors(year))
        return known[1]

    def factors(self, year: int) -> pa.Table:
        return self.rows(FACTORS, [str(year)])

    def units(self, year: int, as_of: datetime | None = None) -> pa.Table:
        return self.rows(UNITS, [str(year)], as_of=as_of)

    def rows(
        self, table: Table, partitions: Sequence[str], columns: str = "*", as_of: datetime | None = None
    ) -> pa.Table:
        """The rows of some partitions of a table, now or as they were."""
        from resources.lake.layout import sql_filter

        query = f"SELECT {columns} FROM {table.name} WHERE {sql_filter(table, partitions)}"
        return self.lake.query(query, partitions={table.name: list(partitions)}, as_of=as_of)

    def sent(self, dispatch_id: str | None, table: str, asked: Sequence[str]) -> list[str]:
        """Of a run's partitions those it was sent for; of a run that is repeated, those that are still due.

        A run that nobody sent does all it was asked for.
        """
        if dispatch_id is None:
            return list(asked)
        keys = {row.key for row in self.ledger.sent(dispatch_id)} or {v.key for v in self.plan().due}
        return [p for p in asked if f"{table}:{p}" in keys]

    def staged_rows(self, upload: Upload | CurrentUpload) -> pa.Table:
        """The rows of an upload; an error names it."""
        try:
            return self.staging.rows(upload.pipeline_id)
        except InfrastructureError as error:
            if error.reason_code != LOST:
                raise
            named = f"{upload.name} (upload {upload.id}): {error.message}"
            raise InfrastructureError(named, reason_code=error.reason_code, remedy=error.remedy) from error

    def refuse_locked(self, years: Sequence[int]) -> None:
        """Raise if a year may not be changed."""
        held = self.store.year_locks.held()
        for year in years:
            if (lock := held.get(year)) is not None:
                raise YearLocked(lock)

    def refuse_outside(self, years: Sequence[int]) -> None:
        """Raise if a year has no partitions."""
        for year in years:
            if year not in self.years:
                raise InvalidInput(
                    f"{year} {outside(self.years)}",
                    reason_code=YEAR_OUTSIDE,
                    remedy=f"correct the year, or set PERENNIAL_CARBON_YEARS={min(year, self.years[0])},"
                    f"{max(year, self.years[-1])}; restart `perennial up` if it runs",
                )

    def refuse_not_indexed(self) -> None:
        """Raise if staging holds uploads that the ledger does not know."""
        if missing := not_indexed(self.staging, self.store):
            raise NotIndexed(len(missing))

    def lock_year(self, year: int, by: str, reason: str) -> YearLock:
        """From when this returns, nothing changes the year."""
        lock = self.store.year_locks.lock(year, by, reason)
        # Work that was called off, or whose lease ran out, may be past its last check: its swap comes first.
        for table in TABLES:
            self.lake.await_writer(table.name)
        return lock


class NotIndexed(TransientResourceError):
    """The ledger was lost or restored; what it lacks must be indexed before anything changes."""

    reason_code = "not_indexed"

    def __init__(self, count: int) -> None:
        super().__init__(
            f"{count:,} staged uploads are not indexed; nothing is imported without them",
            remedy="run `perennial carbon reindex`",
        )
