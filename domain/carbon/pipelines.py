"""The status of a pipeline, derived from its work items: nothing of it is kept anywhere.

A pipeline begins with a file and has three phases. Its work may belong to other pipelines too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from domain.carbon.catalogue import Catalogue
from domain.carbon.jobs import ASKED, FEED_ENTRIES, FEED_FACTORS, JOBS, Phase
from domain.carbon.plan import YEAR_LOCKED
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, REPORT_MODULES, name_of, year_of
from domain.shared.pipeline import Span, Status, span
from domain.shared.verdict import Plan
from domain.shared.work import Work

PHASES: Mapping[Phase, tuple[str, ...]] = {
    phase: tuple(job.kind for job in JOBS if job.phase == phase) for phase in get_args(Phase)
}
"""The kinds of work of each phase, in their order."""


_OF_A_TYPE = (FEED_FACTORS, FEED_ENTRIES, DATA_ENTRIES.table, EMISSIONS.table)

CARRIED = 20
"""Pipelines that new emissions take over from those they replace, if no report includes these."""


def newest_pipelines(pipelines: Iterable[str]) -> tuple[str, ...]:
    """Return as many as are carried. While something cannot be calculated, each edit is one more pipeline."""
    return tuple(sorted(set(pipelines))[-CARRIED:])


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


@dataclass(frozen=True)
class Pipeline(Span):
    phases: Mapping[Phase, Span] = field(default_factory=dict)


def pipeline(
    rows: Iterable[Work], *, refused: bool = False, more: bool = False, locked: bool = False
) -> Pipeline:
    """Return the pipeline of these work items.

    `refused`: its file was. `more`: the plan has further work for it that is not enqueued yet. `locked`: that
    work is not done unless a year is unlocked.
    """
    known = list(rows)
    phases = {name: span([r for r in known if r.kind in kinds]) for name, kinds in PHASES.items()}
    whole = span(known)
    status: Status = "FAILED" if refused else _status_of(whole.status, list(phases.values()), more)
    if locked and status == "SUCCESS":
        status = "PARTIAL"
    finished = None if status == "RUNNING" else whole.finished
    return Pipeline(status, whole.started, finished, phases)


def _status_of(rows: Status, phases: Sequence[Span], more: bool) -> Status:
    """Return the status by phases. The first that has work is the root: if it failed, the pipeline did."""
    if rows in ("NOT_STARTED", "RUNNING"):
        return rows
    begun = [phase.status for phase in phases if phase.status != "NOT_STARTED"]
    if begun[0] == "FAILED":
        return "FAILED"
    if set(begun) != {"SUCCESS"}:
        return "PARTIAL"
    return "RUNNING" if more else "SUCCESS"


def recalculating(catalogue: Catalogue, rows: Iterable[Work]) -> frozenset[tuple[str, int]]:
    """Return the modules, each with its year, whose numbers are about to change: any part is queued or
    running."""
    moving = [r for r in rows if r.status in ("queued", "running")]
    names = {(r.table, name_of(r.partition), year_of(r.partition)) for r in moving}
    found = {(name, year) for table, name, year in names if table in (REPORT_MODULES.table, ASKED)}
    for table, name, year in names:
        if table in _OF_A_TYPE and name in catalogue.types:
            found.add((catalogue.type(name).module, year))
    return frozenset(found)
