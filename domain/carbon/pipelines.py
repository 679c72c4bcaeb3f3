"""The status of a pipeline, derived from its work items: nothing of it is kept anywhere.

A chain begins with a file and has three phases. Its work may be shared with other chains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol, get_args

from domain.carbon.catalogue import Catalogue
from domain.carbon.jobs import ASKED, FEED_ENTRIES, JOBS, Phase
from domain.carbon.plan import YEAR_LOCKED
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, REPORT_MODULES, year_of
from domain.shared.verdict import Plan

Status = Literal["NOT_STARTED", "RUNNING", "SUCCESS", "PARTIAL", "FAILED"]
"""NOT_STARTED  nothing was begun
RUNNING      some of it waits, runs or was put off
SUCCESS      all is done
PARTIAL      it was begun well, and something of it failed, was called off, or is kept back by a locked year
FAILED       nothing came of its beginning
"""
PHASES: Mapping[Phase, tuple[str, ...]] = {
    phase: tuple(job.kind for job in JOBS if job.phase == phase) for phase in get_args(Phase)
}
"""The kinds of work of each phase, in their order."""


CARRIED = 20
"""Chains that what is made anew takes over from what it replaces, before anything was made of that."""


def newest_chains(chains: Iterable[str]) -> tuple[str, ...]:
    """As many as are carried. While something cannot be calculated, every edit upstream is one more chain;
    the older ones join what is calculated at last by the work of theirs that failed."""
    return tuple(sorted(set(chains))[-CARRIED:])


def unfinished_pipelines(plan: Plan) -> frozenset[str]:
    """Return the pipelines whose results are not all made, whether that is work already or not."""
    return frozenset(p for v in plan.verdicts for p in v.pipelines)


def locked_pipelines(plan: Plan) -> Mapping[str, frozenset[int]]:
    """Return the pipelines that only locked years keep from their end, with those years."""
    coming = {p for v in plan.verdicts if v.reason_code != YEAR_LOCKED for p in v.pipelines}
    found: dict[str, set[int]] = defaultdict(set)
    for verdict in plan.verdicts:
        for name in set(verdict.pipelines).difference(coming):
            found[name].add(year_of(verdict.partition))
    return {name: frozenset(years) for name, years in found.items()}


class Row(Protocol):
    """What is to be known of a piece of work."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason_code(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def finished_at(self) -> datetime | None: ...


@dataclass(frozen=True)
class Span:
    """From the first start of its work to the last end; while any of it goes on, there is no end."""

    status: Status
    started: datetime | None = None
    finished: datetime | None = None

    @property
    def duration(self) -> timedelta | None:
        return self.finished - self.started if self.started and self.finished else None


@dataclass(frozen=True)
class Pipeline(Span):
    phases: Mapping[Phase, Span] = field(default_factory=dict)


def pipeline(
    rows: Iterable[Row], *, refused: bool = False, more: bool = False, locked: bool = False
) -> Pipeline:
    """A chain from its rows.

    `refused`: its file was. `more`: the plan has further work for it that is no row yet, as between the end
    of one phase and the look that begins the next, or while the report waits for another chain. `locked`:
    that work will not be done unless a year is unlocked.
    """
    known = list(rows)
    phases = {name: _span([r for r in known if r.kind in kinds]) for name, kinds in PHASES.items()}
    whole = _span(known)
    status: Status = "FAILED" if refused else _status_of(whole.status, list(phases.values()), more)
    if locked and status == "SUCCESS":
        status = "PARTIAL"
    finished = None if status == "RUNNING" else whole.finished
    return Pipeline(status, whole.started, finished, phases)


def _status_of(rows: Status, phases: Sequence[Span], more: bool) -> Status:
    """The first phase that has work is the root: if nothing came of it, nothing came of the chain."""
    if rows in ("NOT_STARTED", "RUNNING"):
        return rows
    begun = [phase.status for phase in phases if phase.status != "NOT_STARTED"]
    if begun[0] == "FAILED":
        return "FAILED"
    if set(begun) != {"SUCCESS"}:
        return "PARTIAL"
    return "RUNNING" if more else "SUCCESS"


def _span(rows: Sequence[Row]) -> Span:
    counting = _counting(rows)
    status = _status(counting)
    started = min((r.started_at for r in rows if r.started_at), default=None)
    ends = [r.finished_at for r in counting if r.finished_at]
    over = status not in ("NOT_STARTED", "RUNNING")
    return Span(status, started, max(ends, default=None) if over else None)


def _counting(rows: Sequence[Row]) -> list[Row]:
    """Of the work for one key the newest: what failed before it, it has tried again."""
    needed = [row for row in rows if row.status != "superseded"]
    # Sorting keeps the order of equals: of two rows of one moment the later one counts.
    return list({(r.kind, r.key): r for r in sorted(needed, key=lambda r: r.created_at)}.values())


def _status(rows: Sequence[Row]) -> Status:
    found = {row.status for row in rows}
    if found <= {"queued"} and not any(row.started_at for row in rows):
        return "NOT_STARTED"
    if found & {"queued", "running", "deferred"}:
        return "RUNNING"
    if not found & {"failed", "cancelled"}:
        return "SUCCESS"
    return "PARTIAL" if found & {"completed", "skipped"} else "FAILED"


def recalculating(catalogue: Catalogue, rows: Iterable[Row]) -> frozenset[tuple[str, int]]:
    """The modules, each with its year, of which any part is queued or running: their numbers are about to
    change. What was put off does not move before its time."""
    moving = [r.key.split(":", 1) for r in rows if r.status in ("queued", "running")]
    names = {(table, partition.split("|")[0], year_of(partition)) for table, partition in moving}
    found = {(name, year) for table, name, year in names if table in (REPORT_MODULES.table, ASKED)}
    for table, name, year in names:
        if table in (FEED_ENTRIES, DATA_ENTRIES.table, EMISSIONS.table) and name in catalogue.types:
            found.add((catalogue.type(name).module, year))
    return frozenset(found)
