"""A year of files through the product's own calculation, from bytes to report: no lake, no ledger."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from domain.carbon.catalogue import Catalogue
from domain.carbon.emissions import emissions
from domain.carbon.factors import Origin, YearOfFactors, merged
from domain.carbon.intake.entries_file import Scope, read_entries
from domain.carbon.intake.factors_file import read_factors
from domain.carbon.intake.units_file import read_units
from domain.carbon.reports import module_rows, report_rows, summing
from domain.carbon.tables import EMISSIONS
from domain.shared.compute import query
from domain.shared.tabular.sheet import Parsed

BROUGHT = Origin(1, "file", datetime(2026, 1, 1, tzinfo=UTC))


@dataclass(frozen=True)
class Files:
    """What was uploaded for a year."""

    year: int
    units: bytes
    factors: bytes
    data: Mapping[str, bytes]


@dataclass(frozen=True)
class Taken:
    """The rows of a year's files."""

    units: pa.Table
    factors: pa.Table
    entries: Mapping[str, pa.Table]


@dataclass(frozen=True)
class Calculated:
    emissions: pa.Table
    modules: Mapping[str, pa.Table]
    report: pa.Table

    def masses(self, entries: Mapping[str, pa.Table]) -> dict[tuple[str, str, str], tuple[str, int | None]]:
        """By type, entry id and kind of emissions: status and milligrams."""
        keys = pa.concat_tables(
            [e.select(["data_entry_type", "entry_key", "entry_id"]) for e in entries.values()]
        )
        sql = """SELECT data_entry_type, entry_id, emission_type, status, mg_co2e
                 FROM emissions JOIN keys USING (data_entry_type, entry_key)"""
        found = query(sql, {"emissions": self.emissions, "keys": keys}).to_pydict()
        kind, entry, emission, status, mg = found.values()
        masses = dict(
            zip(
                zip(kind, entry, emission, strict=True),
                zip(status, mg, strict=True),
                strict=True,
            )
        )
        assert len(masses) == self.emissions.num_rows, "an entry has two results of one kind"
        return masses


def read(files: Files, catalogue: Catalogue) -> dict[str, Parsed]:
    """Each file as intake reads it."""
    units = read_units(io.BytesIO(files.units))
    known = {files.year: units.frame.column("unit_id").to_pylist()}
    scope = Scope("main", year=files.year)
    return {
        "units": units,
        "factors": read_factors(io.BytesIO(files.factors), catalogue),
        **{
            name: read_entries(io.BytesIO(content), catalogue, lambda year: known.get(year, ()), scope)
            for name, content in files.data.items()
        },
    }


def taken(files: Files, catalogue: Catalogue) -> Taken:
    parsed = read(files, catalogue)
    for name, one in parsed.items():
        assert not one.problem_count, f"{name}: {[str(p) for p in one.problems[:3]]}"
    year = merged(files.year, YearOfFactors.empty(), parsed["factors"].frame, BROUGHT)
    return Taken(parsed["units"].frame, year.factors, {name: parsed[name].frame for name in files.data})


def calculated(catalogue: Catalogue, year: int, rows: Taken) -> Calculated:
    made = [emissions(catalogue.type(name), e, rows.factors) for name, e in rows.entries.items()]
    found = pa.concat_tables([EMISSIONS.schema.empty_table(), *made])
    sums = query(summing("emissions"), {"emissions": found})
    modules = {m.name: module_rows(catalogue, m, year, sums) for m in catalogue.modules}
    return Calculated(found, modules, report_rows(catalogue, year, sums, rows.units))
