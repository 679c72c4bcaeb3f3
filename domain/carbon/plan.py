"""The carbon plan: from what was observed, what should be done and why.

A pure function of state. Each partition is due when what it was made from is not what is there now, so an
upload, a lost file, a changed rule and a missed event all lead to the same work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from domain.carbon.catalogue import Catalogue
from domain.carbon.observed import Arrived, Observed
from domain.carbon.reports import scopes
from domain.carbon.tables import (
    DATA_ENTRIES,
    EMISSIONS,
    FACTOR_VERSIONS,
    FACTORS,
    REPORT_MODULES,
    REPORTS,
    UNITS,
)
from domain.shared.backoff import Backoff
from domain.shared.cell import Cell, fault
from domain.shared.hashing import digest
from domain.shared.table import ABSENT
from domain.shared.work import Item, Kind

UNIT_SYNC = "carbon.unit_sync"
FACTOR_INGEST = "carbon.factor_ingest"
DATA_INGEST = "carbon.csv_ingest"
RECALCULATION = "carbon.emission_recalc"
AGGREGATION = "carbon.aggregation"

_ACROSS_RUNS = Backoff(base=timedelta(seconds=60), factor=2, cap=timedelta(hours=1))
KINDS = tuple(
    Kind(name, transient=_ACROSS_RUNS)
    for name in (UNIT_SYNC, FACTOR_INGEST, DATA_INGEST, RECALCULATION, AGGREGATION)
)
KIND_OF: Mapping[str, str] = {
    UNITS.table: UNIT_SYNC,
    FACTORS.table: FACTOR_INGEST,
    DATA_ENTRIES.table: DATA_INGEST,
    EMISSIONS.table: RECALCULATION,
    REPORT_MODULES.table: AGGREGATION,
    REPORTS.table: AGGREGATION,
}
"""By table, the kind of work that makes its partitions."""
PRIORITY: Mapping[str, int] = {
    UNIT_SYNC: 40,
    FACTOR_INGEST: 40,
    DATA_INGEST: 30,
    RECALCULATION: 20,
    AGGREGATION: 10,
}

State = Literal["healthy", "due", "waits", "locked"]
"""healthy  what it was made from is what is there
due      work
waits    it would be due, but what it is made from is about to change
locked   it would be due, but its year is locked
"""


@dataclass(frozen=True)
class Verdict:
    """What the plan thinks of one partition of one table."""

    table: str
    partition: str
    state: State
    reason_code: str
    why: str
    fingerprint: str = ""
    pipelines: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.table}:{self.partition}"

    @property
    def kind(self) -> str:
        return KIND_OF[self.table]

    @property
    def year(self) -> int:
        return year_of(self.partition)

    @property
    def due(self) -> bool:
        return self.state == "due"

    def item(self) -> Item:
        return Item(
            kind=self.kind,
            key=self.key,
            fingerprint=self.fingerprint,
            reason_code=self.reason_code,
            priority=PRIORITY[self.kind],
            pipelines=self.pipelines,
        )


@dataclass(frozen=True)
class Plan:
    verdicts: tuple[Verdict, ...]

    @property
    def due(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.due)


def year_of(partition: str) -> int:
    """Of `2025` and of `plane|2025`."""
    return int(partition.rsplit("|", 1)[-1])


def plan(catalogue: Catalogue, seen: Observed) -> Plan:
    """Everything a look has an opinion on, upstream first."""
    verdicts = [*_intake(catalogue, seen), *_emissions(catalogue, seen)]
    verdicts += _reports(catalogue, seen, verdicts)
    return Plan(tuple(verdicts))


# Intake: a partition is what the newest uploads of its places say.


def units_inputs(seen: Observed, year: int) -> dict[str, str]:
    return _made_of(_newest(seen.uploads, "units", "", year))


def factors_inputs(seen: Observed, year: int) -> dict[str, str]:
    """All of them, in their order: an upload adds to what was there before."""
    return _made_of([u for u in seen.uploads if u.kind == "factors" and year in u.years])


def entries_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str]:
    name = partition.split("|", 1)[0]
    newest = _newest(seen.uploads, "data", name, year_of(partition))
    return _made_of(newest) | {"rules": digest(catalogue.type(name).rules)}


def newest_uploads(uploads: Iterable[Arrived], kind: str, topic: str, year: int) -> list[Arrived]:
    return _newest(uploads, kind, topic, year)


def _newest(uploads: Iterable[Arrived], kind: str, topic: str, year: int) -> list[Arrived]:
    """Of each place (institution and source) the newest upload that speaks of the year, oldest first."""
    found: dict[tuple[str, str], Arrived] = {}
    for one in uploads:
        if (one.kind, one.topic) == (kind, topic) and year in one.years:
            found.pop((one.institution, one.source), None)
            found[one.institution, one.source] = one
    return list(found.values())


def _made_of(uploads: Collection[Arrived]) -> dict[str, str]:
    return {"uploads": ",".join(str(u.id) for u in uploads)} if uploads else {}


def _intake(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    for year in seen.years_of("units"):
        yield _judge_intake(seen, [UNITS.table], str(year), units_inputs(seen, year))
    for year in seen.years_of("factors"):
        tables = [FACTORS.table, FACTOR_VERSIONS.table]
        yield _judge_intake(seen, tables, str(year), factors_inputs(seen, year))
    for partition in seen.entry_partitions(catalogue):
        inputs = entries_inputs(catalogue, seen, partition)
        yield _judge_intake(seen, [DATA_ENTRIES.table], partition, inputs)


def _judge_intake(seen: Observed, tables: list[str], partition: str, inputs: Mapping[str, str]) -> Verdict:
    """A partition that files fill, with those of its tables that are filled together."""
    cells = [seen.cell(t, partition) for t in tables]
    waiting = {u.id: u for u in seen.uploads if str(u.id) in _numbers(inputs) - _numbers(cells[0].inputs)}
    pipelines = tuple(sorted({u.pipeline_id for u in waiting.values()}))
    found = (*(str(c.version) for c in cells), *(str(c.recorded) for c in cells), digest(inputs))
    for cell in cells:
        if cell.recorded is None and cell.version == ABSENT:
            why = f"{len(waiting)} uploaded files wait to be taken in"
            return _wanted(seen, tables[0], partition, "uploaded", why, found, pipelines)
        if wrong := fault(cell, "taken in"):
            return _wanted(seen, tables[0], partition, *wrong, found, pipelines)
    if cells[0].inputs != inputs:
        if not waiting:
            return _wanted(seen, tables[0], partition, "rules_changed", "the type's formula changed", found)
        why = f"{len(waiting)} uploaded files wait to be taken in"
        return _wanted(seen, tables[0], partition, "uploaded", why, found, pipelines)
    return _healthy(tables[0], partition, cells[0])


def _numbers(inputs: Mapping[str, str]) -> set[str]:
    return set(inputs.get("uploads", "").split(",")) - {""}


# Emissions: from the entries, the factors of their type, and the type's formula.


def emissions_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str] | None:
    """None while the entries are not what they should be, or the factors cannot be read."""
    entries = seen.cell(DATA_ENTRIES.table, partition)
    year = year_of(partition)
    factors = seen.factor_digests.get(year)
    if not entries.untouched or entries.version == ABSENT or factors is None:
        return None
    name = partition.split("|", 1)[0]
    return {
        "entries": str(entries.version),
        "factors": factors.get(name, "none"),
        "rules": digest(catalogue.type(name).rules),
    }


def _emissions(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    for partition in seen.entry_partitions(catalogue):
        inputs = emissions_inputs(catalogue, seen, partition)
        if inputs is None:
            continue
        name, year = partition.split("|", 1)[0], str(year_of(partition))
        causes = {
            "entries": seen.cell(DATA_ENTRIES.table, partition).detail.get("pipelines", ()),
            "factors": seen.cell(FACTORS.table, year).detail.get("pipelines_by_type", {}).get(name, ()),
        }
        yield _judge_derived(seen, EMISSIONS.table, partition, inputs, causes)


# Reports: from all emissions of the year, once nothing of them is about to change.


def module_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str]:
    name, year = partition.split("|", 1)
    types = [t.name for t in catalogue.module(name).types]
    return _of_types(seen, types, year) | {"scopes": digest(dict(scopes(catalogue)))}


def report_inputs(catalogue: Catalogue, seen: Observed, year: str) -> dict[str, str]:
    units = seen.cell(UNITS.table, year)
    return _of_types(seen, catalogue.types, year) | {
        "scopes": digest(dict(scopes(catalogue))),
        "units": str(units.version),
    }


def _of_types(seen: Observed, types: Iterable[str], year: str) -> dict[str, str]:
    cells = {t: seen.cell(EMISSIONS.table, f"{t}|{year}") for t in types}
    return {t: str(cell.version) for t, cell in cells.items() if cell.version != ABSENT}


def _reports(catalogue: Catalogue, seen: Observed, upstream: Collection[Verdict]) -> Iterator[Verdict]:
    """Not while a calculation of the year is due or under way. One that was put off or failed holds nothing
    back: the report then says which types are old."""
    moving = {
        v.year
        for v in upstream
        if (v.due and seen.work.get(v.key) not in ("deferred", "failed", "cancelled"))
        or seen.work.get(v.key) in ("queued", "running")
    }
    for year in seen.report_years():
        for module in catalogue.modules:
            partition = f"{module.name}|{year}"
            inputs = module_inputs(catalogue, seen, partition)
            if len(inputs) > 1 or seen.cell(REPORT_MODULES.table, partition).version != ABSENT:
                yield _judge_sums(catalogue, seen, REPORT_MODULES.table, partition, inputs, moving)
        inputs = report_inputs(catalogue, seen, str(year))
        yield _judge_sums(catalogue, seen, REPORTS.table, str(year), inputs, moving)


def _judge_sums(
    catalogue: Catalogue,
    seen: Observed,
    table: str,
    partition: str,
    inputs: Mapping[str, str],
    moving: Collection[int],
) -> Verdict:
    year = year_of(partition)
    made_from = {t: seen.cell(EMISSIONS.table, f"{t}|{year}") for t in inputs if t in catalogue.types}
    made_from["units"] = seen.cell(UNITS.table, str(year))
    causes = {name: cell.detail.get("pipelines", ()) for name, cell in made_from.items()}
    broken = any(cell.version.damaged for cell in made_from.values())
    verdict = _judge_derived(seen, table, partition, inputs, causes)
    if verdict.due and (year in moving or broken):
        why = f"{verdict.why}; it waits for the calculations of {year}"
        return Verdict(table, partition, "waits", verdict.reason_code, why)
    return verdict


# What all have in common


def _judge_derived(
    seen: Observed,
    table: str,
    partition: str,
    inputs: Mapping[str, str],
    causes: Mapping[str, Iterable[str]],
) -> Verdict:
    cell = seen.cell(table, partition)
    changed = sorted(k for k in inputs.keys() | cell.inputs.keys() if inputs.get(k) != cell.inputs.get(k))
    pipelines = tuple(sorted({p for k in changed for p in causes.get(k, ())}))
    found = (str(cell.version), str(cell.recorded), digest(dict(inputs)))
    if cell.recorded is None and cell.version == ABSENT:
        return _wanted(seen, table, partition, "missing", "never calculated", found, pipelines)
    if wrong := fault(cell, "calculated"):
        return _wanted(seen, table, partition, *wrong, found, pipelines)
    if changed:
        verb = "is" if len(changed) == 1 else "are"
        why = f"out of date: {', '.join(changed)} {verb} not what it was made from"
        return _wanted(seen, table, partition, "inputs_changed", why, found, pipelines)
    return _healthy(table, partition, cell)


def _healthy(table: str, partition: str, cell: Cell) -> Verdict:
    return Verdict(table, partition, "healthy", "", f"{cell.version.rows:,} rows")


def _wanted(
    seen: Observed,
    table: str,
    partition: str,
    reason_code: str,
    why: str,
    found: tuple[str, ...],
    pipelines: tuple[str, ...] = (),
) -> Verdict:
    if (reason := seen.locked.get(year_of(partition))) is not None:
        told = f"{why}, but {year_of(partition)} is locked: {reason}"
        return Verdict(table, partition, "locked", "year_locked", told)
    fingerprint = digest([reason_code, *found])
    return Verdict(table, partition, "due", reason_code, why, fingerprint, pipelines)
