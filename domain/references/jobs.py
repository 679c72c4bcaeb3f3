"""The kinds of work on references: scrape a source, hand contents to ingestion, ingest them."""

from __future__ import annotations

from datetime import timedelta

from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.backoff import Backoff
from domain.shared.work import Kind

SCRAPE = "references.scrape"
HANDOFF = "references.handoff"
INGEST = "references.ingest"

HANDOFFS = "handoffs"
"""The first word of the keys of hand-offs, and the asset that drains them; it is no lake table."""

ATTEMPTS = 3
"""Attempts at handing over one content, unless a setting says otherwise."""
_ACROSS_RUNS = Backoff(base=timedelta(seconds=60), factor=2, cap=timedelta(hours=1))
"""Without a maximum: a source that is down for a weekend needs no person on Monday."""


def scrape_key(source: str) -> str:
    return f"{REFERENCES.table}:{source}"


def handoff_key(number: int) -> str:
    return f"{HANDOFFS}:{number}"


def handoff_id(key: str) -> int:
    return int(key.removeprefix(f"{HANDOFFS}:"))


def ingest_key(reference_id: str) -> str:
    return f"{DOCUMENTS.table}:{reference_id}"


def kinds(attempts: int = ATTEMPTS, backoff: timedelta = timedelta(0)) -> tuple[Kind, ...]:
    """Return the kinds, with the attempts at a hand-off and the first wait between two of them."""
    handing = Backoff(base=backoff, factor=2, cap=timedelta(seconds=60), max_attempts=attempts)
    return (
        Kind(SCRAPE, transient=_ACROSS_RUNS),
        Kind(HANDOFF, transient=handing, unclassified=handing, pulled=True),
        Kind(INGEST, transient=_ACROSS_RUNS, pulled=True),
    )


KINDS = kinds()
