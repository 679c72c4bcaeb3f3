"""Results without a factor: how many there are, and which classifications lack one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from domain.carbon.emissions import UNMATCHED
from domain.carbon.observed import Observed
from domain.carbon.report_state import types_with_changed_entries
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, UNITS, name_of, year_of
from domain.shared.packaged import packaged
from services.carbon.service import CarbonService


@dataclass(frozen=True)
class WithoutFactor:
    kinds: list[dict[str, Any]]
    """By year, type, kind of emissions and classification, the entries that no factor matches."""
    of_all: int
    """The number of such kinds, shown or not."""
    results: int
    """The number of their results."""

    def as_json(self) -> dict[str, Any]:
        return {"results": self.results, "of_all": self.of_all, "without_factor": self.kinds}


def find_without_factor(
    carbon: CarbonService,
    years: Sequence[int] = (),
    *,
    types: Collection[str] = (),
    institution: str | None = None,
    unit: str | None = None,
    limit: int = 20,
    seen: Observed | None = None,
) -> WithoutFactor:
    """What lacks a factor, the most frequent first; without years or types, of all that were calculated."""
    present = [
        partition
        for partition in carbon.lake.partitions(EMISSIONS.name)
        if (not years or year_of(partition) in years) and (not types or name_of(partition) in types)
    ]
    if not present:
        return WithoutFactor([], 0, 0)
    wanted = sorted({year_of(partition) for partition in present})
    seen = seen or carbon.observe()
    changed = [f"{n}|{y}" for y in wanted for n in types_with_changed_entries(carbon.catalogue, seen, y)]
    rows = carbon.lake.query(
        packaged(__file__, "without_factor"),
        params={
            "years": wanted,
            "types": sorted({name_of(partition) for partition in present}),
            "institution": institution,
            "unit": unit,
            "changed": changed,
            "limit": limit,
        },
        partitions={
            EMISSIONS.name: present,
            DATA_ENTRIES.name: present,
            UNITS.name: [str(year) for year in wanted],
        },
    )
    if not rows.num_rows:
        return WithoutFactor([], 0, 0)
    of_all, results = (rows.column(name)[0].as_py() for name in ("kinds", "of_all"))
    return WithoutFactor(rows.drop_columns(["kinds", "of_all"]).to_pylist(), of_all, results)


def count_without_factor(carbon: CarbonService, seen: Observed) -> dict[int, dict[str, dict[str, int]]]:
    """Return by year, module and type how many results have no factor, where any has none.

    As recorded with the results; where an earlier version did not record it, they are counted.
    """
    states = {p: seen.state(EMISSIONS.table, p) for p in seen.partitions(EMISSIONS.table)}
    known = {p: state for p, state in states.items() if state.untouched and state.version.rows}
    counts = {p: state.detail[UNMATCHED] for p, state in known.items() if UNMATCHED in state.detail}
    if others := [p for p in known if p not in counts]:
        from resources.lake.layout import sql_filter

        sql = packaged(__file__, "unmatched_by_partition").format(where=sql_filter(EMISSIONS, others))
        found = carbon.lake.query(sql, partitions={EMISSIONS.name: others}).to_pylist()
        counts |= {row["partition"]: row["unmatched"] for row in found}
    nested: dict[int, dict[str, dict[str, int]]] = {}
    for kind in carbon.catalogue.types.values():
        for partition in sorted(p for p in counts if name_of(p) == kind.name and counts[p]):
            of_year = nested.setdefault(year_of(partition), {})
            of_year.setdefault(kind.module, {})[kind.name] = counts[partition]
    return nested
