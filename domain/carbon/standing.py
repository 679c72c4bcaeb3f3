"""What a reader of a year's report must know: what of it is old, waits, was altered or left out, or is locked
as it is.

Every place that shows numbers of a report asks here: notes, CSV, differences, the page, what-if.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from domain.carbon.catalogue import Catalogue
from domain.carbon.factors import NEWEST_UPLOADS
from domain.carbon.feeds import ORIGINS
from domain.carbon.jobs import FEED_ENTRIES
from domain.carbon.observed import Observed
from domain.carbon.plan import report_inputs
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, REPORTS, UNITS
from domain.carbon.verdict import Verdict
from domain.shared.state import fault
from domain.shared.table import ABSENT


@dataclass(frozen=True)
class Line:
    """Something that is not as it should be. `of_type`: the one type whose numbers it makes old."""

    subject: str
    why: str
    of_type: str = ""

    def __str__(self) -> str:
        return f"{self.subject} is not up to date: {self.why}"


@dataclass(frozen=True)
class LeftOut:
    """Rows or entries that were refused while the others were taken. `of` is a type, units or factors."""

    of: str
    what: str

    def __str__(self) -> str:
        return f"{self.of}: {self.what}"


@dataclass(frozen=True)
class Standing:
    year: int
    lines: tuple[Line, ...] = ()
    """Upstream first."""
    left_out: tuple[LeftOut, ...] = ()
    """Of what was brought and is in the year's tables now."""
    silent: Mapping[str, datetime | None] = field(default_factory=dict)
    """Applications that do not answer, and when they did last."""
    altered: str = ""
    """Why the report itself is not what was calculated; empty if it is."""
    locked: str | None = None
    """Why the year is locked."""
    unsteady: bool = False
    """It changed again and again while it was read."""

    @property
    def current(self) -> bool:
        """Nothing is known to be due, to wait, to be lost or altered. What was left out, it has not for all
        that, nor what an application has not told."""
        return not (self.lines or self.altered or self.unsteady)

    @property
    def old(self) -> Mapping[str, str]:
        """By type, why the report does not have its newest numbers."""
        return {line.of_type: line.why for line in reversed(self.lines) if line.of_type}

    @property
    def others(self) -> tuple[Line, ...]:
        """What is not as it should be, and of no single type."""
        return tuple(line for line in self.lines if not line.of_type)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Who does not answer, and since when."""
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
        if count := len(self.old):
            return f"{count} {'type' if count == 1 else 'types'} not up to date"
        if not self.current:
            return "Not up to date"
        if self.silent:
            return "Up to date as far as is known"
        return "Made without what was left out" if self.left_out else "Up to date"

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [f"these numbers are not what was calculated: {self.altered}"] if self.altered else []
        if self.unsteady:
            notes.append(
                "the numbers changed while they were read, and may not belong together: read them again"
            )
        if self.old:
            notes.append(f"old in this report: {', '.join(sorted(self.old))}")
        notes += map(str, (*self.lines, *self.left_out))
        notes += [f"{one}: what changed there is not known" for one in self.unanswered]
        if self.locked is not None:
            notes.append(f"{self.year} is locked: {self.locked}")
        return tuple(notes)


def standing(catalogue: Catalogue, seen: Observed, verdicts: Iterable[Verdict], year: int) -> Standing:
    """From all that the plan says of the year, also where a lock leaves it so."""
    lines = [
        Line(f"{v.table} {v.partition}", _why(seen, v), _type_of(catalogue, v))
        for v in verdicts
        if v.year == year and v.state != "healthy"
    ]
    told = {line.of_type for line in lines}
    lines += [
        Line(f"{name} {year}", _NOT_SUMMED, name)
        for name in _unsummed(catalogue, seen, year)
        if name not in told
    ]
    return Standing(
        year,
        tuple(lines),
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
        for place, told in sorted(seen.feed_read_of(f"{name}|{year}").refused.items()):
            yield LeftOut(name, f"{told['entries']:,} of {told['of']:,} entries of {place} are refused")


def _of_files(seen: Observed, kind: str, table: str, year: int, topic: str = "") -> Iterator[LeftOut]:
    """Of the newest file of each place, once it is in the table: a newer one says all that an older did, of
    factors only for the types it has any of. What was read of applications is told as that."""
    state = seen.state(table, f"{topic}|{year}" if topic else str(year))
    inside = state.inputs.get("uploads", "").split(",")
    speaking = {
        n: seen.known_uploads[n]
        for n in state.detail.get(NEWEST_UPLOADS, {}).values()
        if n in seen.known_uploads
    }
    speaking |= {one.id: one for one in seen.newest_uploads(kind, topic, year)}
    for _, one in sorted(speaking.items()):
        if one.left_out and str(one.id) in inside and one.source not in ORIGINS:
            what = f"{one.left_out:,} of {one.rows:,} rows of {one.name} were left out"
            yield LeftOut(topic or kind, what)


def moved_on(catalogue: Catalogue, seen: Observed, year: int) -> list[str]:
    """Types whose results were made of other entries than there are now: results and entries of the same key
    do not belong together then."""

    def are_its_own(partition: str) -> bool:
        made_from = seen.state(EMISSIONS.table, partition).inputs.get("entries")
        return made_from == str(seen.state(DATA_ENTRIES.table, partition).version)

    return [name for name in catalogue.types if not are_its_own(f"{name}|{year}")]


_NOT_SUMMED = "it was calculated anew, and is not summed up yet"


def _why(seen: Observed, verdict: Verdict) -> str:
    """Between its commit and the record of it a partition looks as if a stranger had written it."""
    return "it is being made now" if _is_being_made(seen, verdict.key) else verdict.why


def _is_being_made(seen: Observed, key: str) -> bool:
    return seen.work.get(key) == "running"


def _type_of(catalogue: Catalogue, verdict: Verdict) -> str:
    name = verdict.partition.split("|", 1)[0]
    of_one_type = verdict.table in (FEED_ENTRIES, DATA_ENTRIES.table, EMISSIONS.table)
    return name if of_one_type and name in catalogue.types else ""


def _unsummed(catalogue: Catalogue, seen: Observed, year: int) -> Iterator[str]:
    """Types whose results are others than those that the report was made from."""
    state = seen.state(REPORTS.table, str(year))
    if state.recorded is None:
        return
    wanted = report_inputs(catalogue, seen, str(year))
    yield from (name for name in catalogue.types if wanted.get(name) != state.inputs.get(name))


def _altered(seen: Observed, year: int) -> str:
    state = seen.state(REPORTS.table, str(year))
    # What cannot be read was not altered for that: it is told among the lines.
    never = (state.recorded is None and state.version == ABSENT) or state.version.unavailable
    if never or _is_being_made(seen, f"{REPORTS.table}:{year}"):
        return ""
    wrong = fault(state, "calculated")
    return wrong[1] if wrong else ""
