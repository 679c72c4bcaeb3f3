"""The references domain put together: its tables, its ledger, its scrapers. No Dagster here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from domain.references.documents import Ingest, clean
from domain.references.handoffs import Content
from domain.references.jobs import HANDOFF
from domain.references.plan import Observed, SourceSeen, plan
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.clock import Clock
from domain.shared.error import InvalidInput
from domain.shared.state import PartitionState
from domain.shared.table import Table
from domain.shared.verdict import Plan
from resources.scraping.reference import Scraper
from services.partitions import state_of
from services.references.sources import Only
from services.references.store import ReferencesStore, SourceState

if TYPE_CHECKING:
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger
    from resources.ledger.provenance import Provenance

Outcomes = Mapping[Content, str | Exception]
"""What became of contents: a reason code of a completed hand-off, or an error."""


class HandoffTarget(Protocol):
    """Where contents are handed over to. It may be asked again for what it has."""

    def queue(self, contents: Sequence[Content]) -> Outcomes:
        """Make sure that an ingestion job for each content exists."""
        ...


@dataclass(frozen=True)
class Rules:
    """What settings say of a source."""

    every: Callable[[str], timedelta] = lambda _: timedelta(hours=1)
    """How often it is scraped."""
    fingerprint: Callable[[str], str] = lambda _: ""
    """What changes with everything a permanent refusal may have been about."""


@dataclass
class ReferencesService:
    lake: Lake
    ledger: Ledger
    scrapers: Mapping[str, Scraper]
    ingest: Ingest = clean
    """Makes a document of a reference."""
    rules: Rules = Rules()
    target: HandoffTarget | None = None
    """Where contents are handed over to; the default makes work items of our own ledger."""
    store: ReferencesStore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.store = ReferencesStore(self.ledger.engine, self.ledger.clock, self.ledger.machine_clock)

    @property
    def clock(self) -> Clock:
        return self.ledger.clock

    @property
    def provenance(self) -> Provenance:
        return self.ledger.provenance

    def of_sources(self, names: Iterable[str]) -> ReferencesService:
        """The same service, of these sources only."""
        return replace(self, scrapers=Only(self.scrapers, frozenset(names)))

    def scraper(self, source: str) -> Scraper:
        """The scraper of a source; raises where there is none."""
        self.require(source)
        return self.scrapers[source]

    def require(self, source: str) -> None:
        if source not in self.scrapers:
            known = ", ".join(sorted(self.scrapers)) or "none"
            raise InvalidInput(
                f"there is no source {source[:80]!r}",
                reason_code="unknown_source",
                remedy=f"name one of: {known}; the file of PERENNIAL_REFERENCES_SOURCES names them all",
            )

    def observe(self) -> Observed:
        """Everything the plan judges: versions and records, which are kept. No reference is read."""
        references, documents = self.states(REFERENCES), self.states(DOCUMENTS)
        kept, scraping = self.store.states(), self.store.scraping()
        available = self.store.handoffs.available
        without_work = self._handoffs_without_work() if available else {}
        sources = {
            source: replace(
                self._seen(source, references, documents, kept.get(source, SourceState(source))),
                handoffs_without_work=without_work.get(source, 0),
                being_scraped=source in scraping,
            )
            for source in sorted(self.scrapers)
        }
        return Observed(sources, available, self.clock())

    def _handoffs_without_work(self) -> dict[str, int]:
        """By source, how many more hand-offs are unfinished than work is under way for them."""
        work = self.ledger.backlog(HANDOFF)
        return {
            source: number - (work[source].waiting + work[source].running if source in work else 0)
            for source, number in self.store.handoffs.unfinished_counts().items()
        }

    def _seen(
        self,
        source: str,
        references: Mapping[str, PartitionState],
        documents: Mapping[str, PartitionState],
        kept: SourceState,
    ) -> SourceSeen:
        return SourceSeen(
            references=references.get(source, PartitionState()),
            documents=documents.get(source, PartitionState()),
            scraped_at=kept.scraped_at,
            every=self.rules.every(source),
            handed_version=kept.handed_version,
            ingested_version=kept.ingested_version,
            fingerprint=self.rules.fingerprint(source),
        )

    def states(self, table: Table) -> dict[str, PartitionState]:
        """By source, its partition of a table: what the lake holds beside what was recorded."""
        records = {
            partition: record for (_, partition), record in self.provenance.records([table.name]).items()
        }
        versions = self.lake.versions(table.name, sorted({*records, *self.scrapers}))
        return {source: state_of(version, records.get(source)) for source, version in versions.items()}

    def plan(self) -> Plan:
        return self.plan_of(self.observe())

    def plan_of(self, seen: Observed) -> Plan:
        return plan(seen)

    def rows(
        self, sql: str, table: Table, sources: Sequence[str], extra: Mapping[str, pa.Table] | None = None
    ) -> pa.Table:
        """What one of our statements answers; of the table it reads these partitions only."""
        return self.lake.query(sql, partitions={table.name: list(sources)}, extra=extra)
