"""Calculating emissions and summing them up: from the lake to what a report shows. No Dagster here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.emissions import UNMATCHED, ImplausibleMass, calculate, sums_by_decision
from domain.carbon.observed import Observed
from domain.carbon.patience import UNSUMMED_SINCE, unsummed_since
from domain.carbon.pipelines import newest_pipelines
from domain.carbon.plan import emissions_inputs, module_inputs, report_inputs
from domain.carbon.reports import module_rows, report_rows, summing
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, REPORT_MODULES, REPORTS, UNITS, year_of
from domain.shared.compute import query
from domain.shared.packaged import packaged
from domain.shared.table import Table, Version
from resources.lake.partition_writer import WrittenPartition
from resources.ledger.model import DONE_MEANWHILE
from services.carbon.figures import figures
from services.carbon.service import CarbonService
from services.partitions import Attempt, Built, InputMissing, NotBuilt, Notify, Request


def calculate_emissions(
    carbon: CarbonService, partitions: Sequence[str], this: Attempt, report: Notify
) -> None:
    factors = _Factors(carbon)

    def build(request: Request) -> Built | NotBuilt:
        partition = request.partition
        year = year_of(partition)
        of_year = {FACTORS.name: [str(year)], REPORTS.name: [str(year)]}
        # The inputs are observed before they are read: the next pass sees a change in between.
        seen = carbon.observe_partitions(of_year | {t.name: [partition] for t in (DATA_ENTRIES, EMISSIONS)})
        inputs = emissions_inputs(carbon.catalogue, seen, partition)
        if inputs is None:
            raise InputMissing(f"the entries or factors of {partition} are not complete: they come first")
        if request.is_done(inputs, seen.state(EMISSIONS.table, partition)):
            return NotBuilt(partition, skip=DONE_MEANWHILE)
        used = factors.of(year)
        written = _written(carbon, partition, used)
        groups = sums_by_decision(written.sums)
        metadata = _metadata(groups, used)
        since = unsummed_since(seen, partition) or carbon.clock()
        return Built(
            partition,
            {EMISSIONS.name: written},
            inputs,
            detail={UNSUMMED_SINCE: since.isoformat(), UNMATCHED: metadata["unmatched"]},
            metadata=metadata,
            figures={EMISSIONS.name: figures(EMISSIONS, groups)},
            carried=_carried(seen, partition),
        )

    carbon.materialize([EMISSIONS], partitions, this, report, build)


def _written(carbon: CarbonService, partition: str, factors: pa.Table) -> WrittenPartition:
    """The next file of a partition."""
    kind, year = carbon.catalogue.type(partition.split("|", 1)[0]), year_of(partition)
    opened = carbon.lake.partition_writer(EMISSIONS.name, partition, source=DATA_ENTRIES.name, name="entries")
    try:
        with opened as writer:
            return calculate(kind, year, factors, writer)
    except ImplausibleMass as error:
        raise _named(carbon, partition, error) from error


def _metadata(groups: pa.Table, factors: pa.Table) -> dict[str, Any]:
    """What the results add up to, and the factors behind most of them."""
    [sums] = query(packaged(__file__, "calculation_sums"), {"groups": groups}).to_pylist()
    used = query(packaged(__file__, "calculation_factors"), {"groups": groups, "factors": factors})
    return {**sums, "factors_used": used.to_pylist()}


@dataclass
class _Factors:
    """The factors of a run's years, read once while they stay what they are."""

    carbon: CarbonService
    known: dict[int, tuple[Version, pa.Table]] = field(default_factory=dict)

    def of(self, year: int) -> pa.Table:
        version = self._version(year)
        if year not in self.known or self.known[year][0] != version:
            rows = self.carbon.factors(year)
            if self._version(year) != version:
                return rows  # changed while they were read: whose they are is not known
            self.known[year] = version, rows
        return self.known[year][1]

    def _version(self, year: int) -> Version:
        return self.carbon.lake.version(FACTORS.name, str(year))


def _named(carbon: CarbonService, partition: str, error: ImplausibleMass) -> ImplausibleMass:
    """With the words by which people know the entry."""
    rows = carbon.rows(DATA_ENTRIES, [partition], "entry_key, entry_id, unit_id")
    [row] = rows.filter(pc.equal(rows.column("entry_key"), error.entry_key)).to_pylist()
    entry = f"the entry {row['entry_id']!r} of {row['unit_id']}"
    return ImplausibleMass(error.data_entry_type, error.entry_key, error.mg, entry)


def _carried(seen: Observed, partition: str) -> tuple[str, ...]:
    """The pipelines of the emissions that are replaced, if no report includes them."""
    old = seen.state(EMISSIONS.table, partition)
    name, year = partition.split("|", 1)
    if seen.state(REPORTS.table, year).inputs.get(name) == str(old.version):
        return ()
    return newest_pipelines(old.pipelines)


def sum_modules(carbon: CarbonService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    def build(request: Request) -> Built | NotBuilt:
        partition = request.partition
        module = carbon.catalogue.module(partition.split("|", 1)[0])
        year = year_of(partition)
        emissions = [f"{t.name}|{year}" for t in module.types]
        seen = carbon.observe_partitions({EMISSIONS.name: emissions, REPORT_MODULES.name: [partition]})
        inputs = module_inputs(carbon.catalogue, seen, partition)
        if request.is_done(inputs, seen.state(REPORT_MODULES.table, partition)):
            return NotBuilt(partition, skip=DONE_MEANWHILE)
        rows = module_rows(carbon.catalogue, module, year, sums_of(carbon, emissions))
        return _summed(REPORT_MODULES, partition, rows, inputs, "unmatched")

    carbon.materialize([REPORT_MODULES], partitions, this, report, build)


def sum_reports(carbon: CarbonService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    def build(request: Request) -> Built | NotBuilt:
        partition = request.partition
        emissions = [f"{name}|{partition}" for name in carbon.catalogue.types]
        seen = carbon.observe_partitions(
            {EMISSIONS.name: emissions, UNITS.name: [partition], REPORTS.name: [partition]}
        )
        inputs = report_inputs(carbon.catalogue, seen, partition)
        if request.is_done(inputs, seen.state(REPORTS.table, partition)):
            return NotBuilt(partition, skip=DONE_MEANWHILE)
        year = int(partition)
        rows = report_rows(carbon.catalogue, year, sums_of(carbon, emissions), carbon.units(year))
        return _summed(REPORTS, partition, rows, inputs, "own_unmatched")

    carbon.materialize([REPORTS], partitions, this, report, build)


def sums_of(carbon: CarbonService, partitions: Sequence[str]) -> pa.Table:
    """Summed inside the query: millions of rows never become an Arrow table here."""
    from resources.lake.layout import sql_filter

    sql = summing(EMISSIONS.name, sql_filter(EMISSIONS, partitions))
    return carbon.lake.query(sql, partitions={EMISSIONS.name: partitions})


def _summed(table: Table, partition: str, rows: pa.Table, inputs: Mapping[str, str], unmatched: str) -> Built:
    metadata = {
        "units": pc.count_distinct(rows.column("unit_id")).as_py(),
        "unmatched": pc.sum(rows.column(unmatched), min_count=0).as_py(),
    }
    return Built(
        partition, {table.name: rows}, inputs, metadata=metadata, figures={table.name: figures(table, rows)}
    )
