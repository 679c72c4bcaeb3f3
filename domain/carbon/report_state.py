"""The state of a year's report: what is outdated, waits, was altered or left out, and whether it is locked.

Whatever shows numbers of a report shows its state: notes, CSV, differences, the page, what-if.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from domain.carbon.catalogue import Catalogue
from domain.carbon.factors import NEWEST_UPLOADS
from domain.carbon.feeds import ORIGINS
from domain.carbon.jobs import FEED_ENTRIES, FEED_FACTORS
from domain.carbon.observed import Observed
from domain.carbon.plan import report_inputs
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, REPORTS, UNITS, name_of, year_of
from domain.shared.verdict import Verdict, fault


@dataclass(frozen=True)
class Issue:
    """A partition that is not up to date. `of_type` is the type whose numbers are outdated, if it is one."""

    subject: str
    why: str
    of_type: str = ""

    def __str__(self) -> str:
        return f"{self.subject} is not up to date: {self.why}"


@dataclass(frozen=True)
class LeftOut:
    """Rows or entries that were refused while others were accepted. `of` is a type, units or factors."""

    of: str
    what: str

    def __str__(self) -> str:
        return f"{self.of}: {self.what}"


@dataclass(frozen=True)
class ReportState:
    year: int
    issues: tuple[Issue, ...] = ()
    """Upstream first."""
    left_out: tuple[LeftOut, ...] = ()
    """From the uploads and feeds that are in the year's tables."""
    silent: Mapping[str, datetime | None] = field(default_factory=dict)
    """Applications that do not answer, with their last answer."""
    altered: str = ""
    """Why the report is not what was calculated; empty if it is."""
    locked: str | None = None
    """The reason of the year's lock."""
    unstable: bool = False
    """The year kept changing while it was read."""

    @property
    def current(self) -> bool:
        """Whether nothing is known to be due, waiting, lost or altered.

        Rows that were left out and applications that do not answer do not count.
        """
        return not (self.issues or self.altered or self.unstable)

    @property
    def outdated(self) -> Mapping[str, str]:
        """Why the report lacks the newest numbers of a type, by type."""
        return {issue.of_type: issue.why for issue in reversed(self.issues) if issue.of_type}

    @property
    def other_issues(self) -> tuple[Issue, ...]:
        """The issues that belong to no single type."""
        return tuple(issue for issue in self.issues if not issue.of_type)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """A sentence for each application that does not answer."""
        return tuple(
            f"{name} has never answered"
            if last is None
            else f"{name} has not answered since {last.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            for name, last in sorted(self.silent.items())
        )

    @property
    def headline(self) -> str:
        if self.altered:
            return "Not what was calculated"
        if count := len(self.outdated):
            return f"{count} {'type' if count == 1 else 'types'} not up to date"
        if not self.current:
            return "Not up to date"
        if self.silent:
            return "Up to date as far as is known"
        return "Made without what was left out" if self.left_out else "Up to date"

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [f"these numbers are not what was calculated: {self.altered}"] if self.altered else []
        if self.unstable:
            notes.append(
                "the numbers changed while they were read, and may not belong together: read them again"
            )
        if self.outdated:
            notes.append(f"old in this report: {', '.join(sorted(self.outdated))}")
        notes += map(str, (*self.issues, *self.left_out))
        notes += [f"{one}: what changed there is not known" for one in self.unanswered]
        if self.locked is not None:
            notes.append(f"{self.year} is locked: {self.locked}")
        return tuple(notes)


def report_state(catalogue: Catalogue, seen: Observed, verdicts: Iterable[Verdict], year: int) -> ReportState:
    """The state of a year's report by all verdicts of the year, those that a lock holds back included."""
    issues = [
        Issue(f"{v.table} {v.partition}", _why(seen, v), _type_of(catalogue, v))
        for v in verdicts
        if year_of(v.partition) == year and v.state != "healthy"
    ]
    named = {issue.of_type for issue in issues}
    issues += [
        Issue(f"{name} {year}", _NOT_SUMMED, name)
        for name in _unsummed(catalogue, seen, year)
        if name not in named
    ]
    return ReportState(
        year,
        tuple(issues),
        tuple(_left_out(catalogue, seen, year)),
        dict(seen.silent),
        altered=_altered(seen, year),
        locked=seen.locked.get(year),
    )


def _left_out(catalogue: Catalogue, seen: Observed, year: int) -> Iterator[LeftOut]:
    yield from _of_files(seen, "units", UNITS.table, year)
    yield from _of_files(seen, "factors", FACTORS.table, year)
    for name in catalogue.types:
        yield from _of_files(seen, "data", DATA_ENTRIES.table, year, name)
        for source, counts in sorted(seen.feed_read_of(f"{FEED_ENTRIES}:{name}|{year}").refused.items()):
            yield LeftOut(name, f"{counts['entries']:,} of {counts['of']:,} entries of {source} are refused")


def _of_files(seen: Observed, kind: str, table: str, year: int, topic: str = "") -> Iterator[LeftOut]:
    """The rows left out of the newest upload of each scope, once it is in the table.

    An upload of factors is the newest for the types that it has factors of. Feeds have their own sentence.
    """
    state = seen.state(table, f"{topic}|{year}" if topic else str(year))
    inside = state.inputs.get("uploads", "").split(",")
    recorded = state.detail.get(NEWEST_UPLOADS, {}).values()
    newest = {number: seen.known_uploads[number] for number in recorded if number in seen.known_uploads}
    newest |= {upload.id: upload for upload in seen.newest_uploads(kind, topic, year)}
    for _, upload in sorted(newest.items()):
        if upload.left_out and str(upload.id) in inside and upload.source not in ORIGINS:
            rows = f"{upload.left_out:,} of {upload.rows:,} rows of {upload.name} were left out"
            yield LeftOut(topic or kind, rows)


def types_with_changed_entries(catalogue: Catalogue, seen: Observed, year: int) -> list[str]:
    """Types whose results were calculated from other entries than there are now.

    A result and an entry of the same key do not belong together then.
    """

    def changed(partition: str) -> bool:
        calculated_from = seen.state(EMISSIONS.table, partition).inputs.get("entries")
        return calculated_from != str(seen.state(DATA_ENTRIES.table, partition).version)

    return [name for name in catalogue.types if changed(f"{name}|{year}")]


_NOT_SUMMED = "it was calculated anew, and is not summed up yet"


def _why(seen: Observed, verdict: Verdict) -> str:
    """Between its commit and its record a partition differs from its record."""
    return "it is being made now" if _is_running(seen, verdict.key) else verdict.reason


def _is_running(seen: Observed, key: str) -> bool:
    return seen.work.get(key) == "running"


def _type_of(catalogue: Catalogue, verdict: Verdict) -> str:
    name = name_of(verdict.partition)
    of_one_type = verdict.table in (FEED_FACTORS, FEED_ENTRIES, DATA_ENTRIES.table, EMISSIONS.table)
    return name if of_one_type and name in catalogue.types else ""


def _unsummed(catalogue: Catalogue, seen: Observed, year: int) -> Iterator[str]:
    """Types whose results are not those that the report was made from."""
    state = seen.state(REPORTS.table, str(year))
    if state.recorded is None:
        return
    wanted = report_inputs(catalogue, seen, str(year))
    yield from (name for name in catalogue.types if wanted.get(name) != state.inputs.get(name))


def _altered(seen: Observed, year: int) -> str:
    state = seen.state(REPORTS.table, str(year))
    # A report that cannot be read now is an issue; it was not altered.
    unknown = state.never_made or state.version.unavailable
    if unknown or _is_running(seen, f"{REPORTS.table}:{year}"):
        return ""
    wrong = fault(state)
    return wrong[2] if wrong else ""
