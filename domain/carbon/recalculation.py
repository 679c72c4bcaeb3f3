"""What numbers wait for: types whose factors changed, and how far the recalculation of each module is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from domain.carbon.catalogue import Catalogue
from domain.carbon.observed import Observed
from domain.carbon.pipelines import recalculating
from domain.carbon.plan import YEAR_LOCKED, emissions_inputs
from domain.carbon.tables import EMISSIONS, FACTORS, REPORT_MODULES, name_of, year_of
from domain.shared.verdict import Plan, Verdict, changed_inputs
from domain.shared.work import CANCELLED, FAILED, Work

ModuleStatus = Literal["recalculating", "failed", "due", "waiting", "locked", "current"]
"""recalculating  a part of it is queued or running
failed         a part of it failed or was cancelled: a person decides
due            a part of it is outdated, and is calculated next
waiting        a part of it is put off, or waits for something else
locked         a part of it is outdated, and its year is locked
current        its numbers are made from the entries and factors that there are
"""


@dataclass(frozen=True)
class Part:
    """A partition that is not current: why, and the work item that corrects it."""

    table: str
    year: int
    module: str | None
    """None of the factors of a year."""
    data_entry_type: str | None
    """None of the factors of a year and of the sums of a module."""
    state: str
    reason_code: str
    reason: str
    calculated_at: datetime | None
    job_id: int | None
    job_status: str | None


@dataclass(frozen=True)
class ModuleState:
    year: int
    module: str
    title: str
    status: ModuleStatus
    calculated_at: datetime | None
    """When its sums last changed."""
    parts: Sequence[Part]
    """Those that are not current."""


@dataclass(frozen=True)
class StaleFactors:
    types: Sequence[Part]
    """Types that were calculated with other factors than there are now."""
    years: Sequence[Part]
    """Years whose newest upload of factors is not imported yet, or whose factors cannot be used."""


def stale_factors(catalogue: Catalogue, seen: Observed, plan: Plan, work: Iterable[Work]) -> StaleFactors:
    """Return what is calculated with factors that changed; a type that was never calculated is not."""
    jobs = {row.key: row for row in work}
    types = [v for v in plan.verdicts if v.table == EMISSIONS.table and _other_factors(catalogue, seen, v)]
    years = [v for v in plan.verdicts if v.table == FACTORS.table and v.state != "healthy"]
    return StaleFactors(
        types=[_part(catalogue, seen, jobs, verdict) for verdict in types],
        years=[_part(catalogue, seen, jobs, verdict) for verdict in years],
    )


def _other_factors(catalogue: Catalogue, seen: Observed, verdict: Verdict) -> bool:
    state = seen.state(EMISSIONS.table, verdict.partition)
    inputs = emissions_inputs(catalogue, seen, verdict.partition)
    return state.recorded is not None and inputs is not None and "factors" in changed_inputs(state, inputs)


def module_states(
    catalogue: Catalogue, seen: Observed, plan: Plan, work: Sequence[Work]
) -> list[ModuleState]:
    """Return each module of each year that has numbers, or is about to have some; the newest year first."""
    jobs, moving = {row.key: row for row in work}, recalculating(catalogue, work)
    parts: dict[tuple[int, str], list[Part]] = {(year, name): [] for name, year in moving}
    for verdict in plan.verdicts:
        if (module := _module_of(catalogue, verdict)) is not None:
            mine = parts.setdefault((year_of(verdict.partition), module), [])
            if verdict.state != "healthy":
                mine.append(_part(catalogue, seen, jobs, verdict))
    return [
        ModuleState(
            year=year,
            module=module.name,
            title=module.title,
            status="recalculating" if (module.name, year) in moving else _status(parts[year, module.name]),
            calculated_at=seen.state(REPORT_MODULES.table, f"{module.name}|{year}").committed_at,
            parts=parts[year, module.name],
        )
        for year in sorted({year for year, _ in parts}, reverse=True)
        for module in catalogue.modules
        if (year, module.name) in parts
    ]


def _module_of(catalogue: Catalogue, verdict: Verdict) -> str | None:
    name = name_of(verdict.partition)
    if verdict.table == REPORT_MODULES.table:
        return name
    return catalogue.types[name].module if name in catalogue.types else None


def _status(parts: Sequence[Part]) -> ModuleStatus:
    if any(part.job_status in (FAILED, CANCELLED) for part in parts):
        return "failed"
    if any(part.state not in ("waiting", "unavailable") and part.job_status is None for part in parts):
        return "due"
    if parts and all(part.reason_code == YEAR_LOCKED for part in parts):
        return "locked"
    return "waiting" if parts else "current"


def _part(catalogue: Catalogue, seen: Observed, jobs: Mapping[str, Work], verdict: Verdict) -> Part:
    name, job = name_of(verdict.partition), jobs.get(verdict.key)
    return Part(
        table=verdict.table,
        year=year_of(verdict.partition),
        module=_module_of(catalogue, verdict),
        data_entry_type=name if name in catalogue.types else None,
        state=verdict.state,
        reason_code=verdict.reason_code,
        reason=verdict.reason,
        calculated_at=seen.state(verdict.table, verdict.partition).committed_at,
        job_id=job.id if job else None,
        job_status=job.status if job else None,
    )
