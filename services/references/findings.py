"""The findings about references: what is unhealthy, and why; the watchdog; what the doctor examines."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from domain.references.health import Pulled, findings
from domain.references.jobs import HANDOFF, HANDOFFS, INGEST, SCRAPE
from domain.references.tables import DOCUMENTS
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.freshness import SourceState, source_state
from domain.shared.health import Finding, SourceFreshness
from domain.shared.watchdog import Watch, watch
from resources.scraping.reference import NOTHING_READ
from services.references.sync import freshness_of

if TYPE_CHECKING:
    from services.references.service import ReferencesService

SILENT_BEYOND = timedelta(days=7)
"""A source that did not answer for longer is in error."""


def find_problems(references: ReferencesService) -> list[Finding]:
    """The worst first."""
    ledger = references.ledger
    pulled = [
        Pulled(table, ledger.backlog(kind), ledger.refusals(kind))
        for kind, table in ((HANDOFF, HANDOFFS), (INGEST, DOCUMENTS.table))
    ]
    return findings(references.plan(), ledger.current((SCRAPE,)), references.clock(), machine_clock(), pulled)


def watch_references(references: ReferencesService) -> Watch:
    """Whether every source is scraped in time, and everything that came is handed over and ingested."""
    count = len(references.scrapers)
    kept = f"{count:,} source{'' if count == 1 else 's'}"
    return watch("references", find_problems(references), kept, references.clock())


def source_states(references: ReferencesService) -> list[tuple[SourceFreshness, SourceState]]:
    """When every source last answered and last failed; it is stale once a scrape is a whole period late."""
    known = {row.source: row for row in references.ledger.freshness.all("references")}
    now, found = references.clock(), []
    for name in sorted(references.scrapers):
        row = known.get(freshness_of(name)) or SourceFreshness(freshness_of(name))
        age = now - row.last_success if row.last_success else None
        stale_from = 2 * references.rules.every(name)
        found.append((row, source_state(row, age, stale_from, max(SILENT_BEYOND, stale_from))))
    return found


def check_sources(references: ReferencesService) -> str | None:
    """Each source gives its first reference, or says that nothing changed."""
    if not references.scrapers:
        return None
    for source in references.scrapers:
        try:
            next(iter(references.scraper(source).fetch(NOTHING_READ, full=True)), None)
        except TransientResourceError as error:
            remedy = error.remedy or f"see that the url of {source} is right and the source runs"
            raise PerennialError(f"{source}: {error.message}", remedy=remedy) from error
    return f"{', '.join(references.scrapers)} answer"


CHECKS = {"sources": check_sources}
