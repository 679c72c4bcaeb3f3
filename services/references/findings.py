"""The findings about references: what is unhealthy, and why; the watchdog; what the doctor examines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.references.health import Pulled, findings
from domain.references.jobs import HANDOFF, HANDOFFS, INGEST, SCRAPE
from domain.references.tables import DOCUMENTS
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.health import Finding
from domain.shared.watchdog import Watch, watch
from resources.scraping.reference import NOTHING_READ

if TYPE_CHECKING:
    from services.references.service import ReferencesService


def find_problems(references: ReferencesService) -> list[Finding]:
    """The worst first."""
    ledger = references.ledger
    pulled = [
        Pulled(table, ledger.backlog(kind), ledger.failed(kind))
        for kind, table in ((HANDOFF, HANDOFFS), (INGEST, DOCUMENTS.table))
    ]
    return findings(references.plan(), ledger.current((SCRAPE,)), references.clock(), machine_clock(), pulled)


def watch_references(references: ReferencesService) -> Watch:
    """Whether every source is scraped in time, and everything that came is handed over and ingested."""
    count = len(references.scrapers)
    kept = f"{count:,} source{'' if count == 1 else 's'}"
    return watch("references", find_problems(references), kept, references.clock())


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
