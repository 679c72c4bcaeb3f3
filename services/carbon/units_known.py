"""Whose units there are in a year: what entries are checked against, and what nobody else may take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.observed import Arrived
from domain.carbon.tables import UNITS
from services.carbon.service import CarbonService


def units_of(carbon: CarbonService, year: int) -> dict[str, frozenset[str]]:
    """By institution, those of the year: in the lake, or in uploads on their way there."""
    known = _units_in_lake(carbon, year)
    if known is not None:
        return known
    return {one.institution: _kept(carbon, one, year) for one in _coming(carbon, year)}


def units_of_others(carbon: CarbonService, year: int, mine: str) -> dict[str, frozenset[str]]:
    """Return the same of all other institutions."""
    known = _units_in_lake(carbon, year)
    if known is not None:
        return {institution: units for institution, units in known.items() if institution != mine}
    others = [one for one in _coming(carbon, year) if one.institution != mine]
    return {one.institution: _kept(carbon, one, year) for one in others}


def _units_in_lake(carbon: CarbonService, year: int) -> dict[str, frozenset[str]] | None:
    """None if the lake has not what came last, or cannot be read."""
    seen = carbon.observe_table(UNITS)
    state, coming = seen.state(UNITS.table, str(year)), seen.newest_uploads("units", "", year)
    if not state.version.readable or state.inputs.get("uploads", "") != ",".join(str(u.id) for u in coming):
        return None
    units = carbon.units(year)
    rows = zip(units.column("institution").to_pylist(), units.column("unit_id").to_pylist(), strict=True)
    return _grouped(rows)


def _coming(carbon: CarbonService, year: int) -> Sequence[Arrived]:
    return carbon.observe_table(UNITS).newest_uploads("units", "", year)


def _kept(carbon: CarbonService, upload: Arrived, year: int) -> frozenset[str]:
    return of_year(carbon.staging.rows(upload.pipeline_id), year)


def _grouped(rows: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for institution, unit in rows:
        found[institution].add(unit)
    return {institution: frozenset(units) for institution, units in found.items()}


def of_year(rows: pa.Table, year: int) -> frozenset[str]:
    mine = rows.filter(pc.equal(rows.column("year"), year))
    return frozenset(mine.column("unit_id").to_pylist())
