"""From masses to reports: sums of whole numbers, per unit and up the tree of units."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from domain.carbon.catalogue import Catalogue, Module
from domain.carbon.tables import REPORT_MODULES, REPORTS
from domain.shared.compute import query
from domain.shared.packaged import packaged


def summing(emissions: str, where: str = "true") -> str:
    """SQL: emissions to sums per unit, type and kind of emissions, which both tables are made of."""
    return packaged(__file__, "summed").format(emissions=emissions, where=where)


def module_rows(catalogue: Catalogue, module: Module, year: int, sums: pa.Table) -> pa.Table:
    """The rows of one module and year of `carbon_report_modules`."""
    parameters = {"year": year, "module": module.name}
    found = query(
        packaged(__file__, "report_modules"), {"sums": sums, "kinds": _kinds(catalogue)}, parameters
    )
    return found.cast(REPORT_MODULES.schema)


def report_rows(catalogue: Catalogue, year: int, sums: pa.Table, units: pa.Table) -> pa.Table:
    """The rows of one year of `carbon_reports`: a unit's sums, and those of all units below it added."""
    relations = {"sums": sums, "units": units, "kinds": _kinds(catalogue)}
    return query(packaged(__file__, "reports"), relations, {"year": year}).cast(REPORTS.schema)


def scopes(catalogue: Catalogue) -> Mapping[str, int]:
    """What a report depends on of the catalogue: the scope of each kind of emissions."""
    return {f"{t.name}.{e.name}": e.scope for t in catalogue.types.values() for e in t.emissions}


def _kinds(catalogue: Catalogue) -> pa.Table:
    rows = [(t.name, t.module, e.name, e.scope) for t in catalogue.types.values() for e in t.emissions]
    types, modules, names, numbers = zip(*rows, strict=True)
    return pa.table(
        {
            "data_entry_type": pa.array(types),
            "module": pa.array(modules),
            "emission_type": pa.array(names),
            "scope": pa.array(numbers, pa.int32()),
        }
    )
