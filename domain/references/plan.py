"""The plan of the references: which sources are to be scraped, and what else is not as it should be.

A pure function of what was observed. It reads no reference: versions and records say enough, so a look costs
the same with a thousand references and with a million.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from domain.references.jobs import HANDOFFS, SCRAPE
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.state import NOTHING, PartitionState
from domain.shared.verdict import Plan, Verdict, Wrong, due, fault, waits_for

SCRAPE_DUE = "scrape_due"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
UNAVAILABLE_HANDOFF = "handoff_unavailable"
WITHOUT_HANDOFF = "without_handoff"


@dataclass(frozen=True)
class SourceSeen:
    """What was observed of a source. `handed_version` is the version of its references that all have a
    hand-off."""

    references: PartitionState = NOTHING
    documents: PartitionState = NOTHING
    scraped_at: datetime | None = None
    every: timedelta = timedelta(hours=1)
    handed_version: str = ""
    ingested_version: str = ""
    fingerprint: str = ""
    """Of its scraper: it changes with what a refusal may have been about."""
    handoffs_without_work: int = 0
    """How many of its hand-offs wait though no work is to do them, at least."""
    being_scraped: bool = False

    @property
    def may_lack_handoffs(self) -> bool:
        """Whether hand-offs, or the work to do them, may be missing."""
        return self.lacks_handoffs or self.handoffs_without_work > 0

    @property
    def lacks_handoffs(self) -> bool:
        """Whether some of its references may have no hand-off."""
        version = self.references.version
        return version.readable and str(version) != self.handed_version

    @property
    def is_readable(self) -> bool:
        """Whether its references can be compared with its documents. Corrupt documents are made again."""
        return self.references.version.readable and not self.documents.version.unavailable

    @property
    def documents_compared(self) -> str:
        """The versions of its references and documents, for `ingested_version` once they were compared."""
        return f"{self.references.version} {self.documents.version}"


@dataclass(frozen=True)
class Observed:
    sources: Mapping[str, SourceSeen] = field(default_factory=dict)
    handoffs_available: bool = True
    now: datetime = _LONG_AGO


def plan(seen: Observed) -> Plan:
    """Return one verdict for each source and table, and one for its hand-offs."""
    verdicts: list[Verdict] = []
    for source, one in seen.sources.items():
        verdicts.append(_references(source, one, seen.now))
        verdicts.append(_handoffs(source, one, available=seen.handoffs_available))
        verdicts.append(_documents(source, one))
    return Plan(tuple(verdicts))


def _references(source: str, seen: SourceSeen, now: datetime) -> Verdict:
    verdict = Verdict(REFERENCES.table, source, "healthy", reason="scraped in time")
    if wrong := waits_for([seen.references], {}):
        return _as(verdict, wrong)
    if wrong := fault(seen.references):
        return due(_as(verdict, wrong), SCRAPE, 0, seen.fingerprint)
    if wrong := _late(seen, now):
        # Each time by the clock is other work than the last; after a failure it is the same.
        return due(_as(verdict, wrong), SCRAPE, 0, seen.fingerprint, str(seen.scraped_at))
    return verdict


def _late(seen: SourceSeen, now: datetime) -> Wrong | None:
    if seen.scraped_at is not None and now < seen.scraped_at + seen.every:
        return None
    last = (
        "never scraped to its end"
        if seen.scraped_at is None
        else f"scraped {seen.scraped_at:%Y-%m-%d %H:%M} UTC"
    )
    return "stale", SCRAPE_DUE, f"{last}; to be scraped every {seen.every}"


def _handoffs(source: str, seen: SourceSeen, *, available: bool) -> Verdict:
    verdict = Verdict(HANDOFFS, source, "healthy", reason="every reference was handed over")
    if not available:
        return _as(
            verdict, ("waiting", UNAVAILABLE_HANDOFF, "hand-off is unavailable: its tables were taken away")
        )
    if seen.may_lack_handoffs:
        return _as(
            verdict, ("waiting", WITHOUT_HANDOFF, "references without a hand-off; the next pass makes it")
        )
    return verdict


def _documents(source: str, seen: SourceSeen) -> Verdict:
    verdict = Verdict(DOCUMENTS.table, source, "healthy", reason="as its jobs made it")
    if wrong := waits_for([seen.documents], {}):
        return _as(verdict, wrong)
    if not seen.documents.never_made and (wrong := fault(seen.documents)):
        return _as(verdict, ("waiting", *wrong[1:]))
    return verdict


def _as(verdict: Verdict, wrong: Wrong) -> Verdict:
    state, code, reason = wrong
    return replace(verdict, state=state, reason_code=code, reason=reason)
