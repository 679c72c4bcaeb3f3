"""From entries and factors to masses: whole milligrams per row. The formula is sql/emissions.sql.

What follows from an entry's words and unit is looked up once for each pair of them (rates.py), and joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import EntryType
from domain.carbon.rates import rates, units
from domain.carbon.tables import EMISSIONS
from domain.shared.compute import connection, encoded, packaged
from domain.shared.error import InvalidInput

MOST = 9_007_199_254_740_992
"""Milligrams one result may have: nine million tonnes. What is more, is a mistake in an amount or a factor;
and beyond it doubles no longer know whole milligrams."""
MOST_OF_A_TYPE = 100_000_000_000_000_000
"""Milligrams all results of a type and year may have: a hundred million tonnes. Each may be plausible by
itself, and their sums, of all types together, have to fit into the tables."""

Ask = Callable[[str], pa.Table]
"""Answers a statement over the relation `entries`."""
FORMULA = packaged(__file__, "emissions")
_WORDS = """
    SELECT classification, unit, unit_id, count(*) AS entries FROM entries
    GROUP BY GROUPING SETS ((classification, unit), (unit_id)) ORDER BY ALL
"""


@dataclass(frozen=True)
class Lookups:
    """What the formula joins the entries with, and how many these are."""

    tables: dict[str, pa.Table]
    entries: int

    @classmethod
    def of(cls, kind: EntryType, year: int, factors: pa.Table, ask: Ask) -> Lookups:
        words = ask(_WORDS)
        of_pair = pc.is_null(words.column("unit_id"))
        pairs, others = words.filter(of_pair), words.filter(pc.invert(of_pair))
        known = list(zip(*(pairs.column(n).to_pylist() for n in ("classification", "unit")), strict=True))
        names = others.column("unit_id").combine_chunks()
        tables = {"rates": rates(kind, year, known, factors), "units": units(names)}
        return cls(tables, sum(pairs.column("entries").to_pylist()))


def by_decision(sums: pa.Table) -> pa.Table:
    """Of the sums those by what decided them: a few dozen rows instead of millions."""
    return sums.filter(pc.is_null(sums.column("unit_id")))


def check(kind: EntryType, year: int, entries: int, sums: pa.Table, ask: Ask) -> None:
    """Raise if what it came to cannot be: an entry, or all of them together. Each entry has one result of
    each kind that is counted, or a single one if its mass was measured: none got lost, none came twice."""
    counted: Counter[str] = Counter()
    groups = by_decision(sums)
    for row in groups.to_pylist():
        counted["" if row["status"] == "overridden" else row["emission_type"]] += row["results"]
    measured = counted.pop("", 0)
    if {n + measured for n in counted.values()} - {entries} or (not counted and measured != entries):
        raise AssertionError(
            f"{kind.name} {year}: {entries} entries, and results {counted}, {measured} measured"
        )
    if (pc.max(groups.column("largest")).as_py() or 0) > MOST:
        raise absurd(kind, ask)
    if (whole := int(sum(mg or 0 for mg in groups.column("mg_co2e").to_pylist()))) > MOST_OF_A_TYPE:
        raise ImplausibleSum(kind.name, year, whole)


def absurd(kind: EntryType, ask: Ask) -> ImplausibleMass:
    """Whose mass is more than can be, or no number: a mass of which is told that it is so much or more."""
    formula = FORMULA.replace("CAST(round(", "(least(").replace(") AS BIGINT)", ", 9.2e18))")
    found = ask(f"SELECT entry_key, mg_co2e FROM ({formula}) WHERE NOT abs(mg_co2e) <= {MOST} LIMIT 1")
    key, mg = (column[0].as_py() for column in found.columns)
    return ImplausibleMass(kind.name, key, int(max(mg, -9.2e18)))


@dataclass(frozen=True)
class Results:
    """What the entries of a type and year cause."""

    frame: pa.Table
    """A row per entry and kind of emissions."""
    groups: pa.Table
    """What these come to, by what decided them: a few dozen rows instead of millions."""


def emissions(kind: EntryType, entries: pa.Table, factors: pa.Table) -> pa.Table:
    """What the entries of one type and year cause, with the factors of that year."""
    year = entries.column("year")[0].as_py() if entries.num_rows else 0
    return calculated(kind, year, entries, factors).frame


def calculated(kind: EntryType, year: int, entries: pa.Table, factors: pa.Table) -> Results:
    """The same, with what it comes to."""
    with connection(entries=entries) as con:

        def ask(sql: str) -> pa.Table:
            return con.sql(sql).to_arrow_table()

        known = Lookups.of(kind, year, factors, ask)
        for name, table in known.tables.items():
            con.register(f"{name}_given", table)
            con.execute(f"CREATE TEMP TABLE {name} AS {encoded(name, table)}").fetchall()
        try:
            found = ask(f"SELECT * FROM ({FORMULA}) ORDER BY entry_key, emission_type::VARCHAR")
            con.register("results", found)
            sums = ask(EMISSIONS.sums)
        except duckdb.ConversionException as error:
            raise absurd(kind, ask) from error
        check(kind, year, known.entries, sums, ask)
    return Results(found.cast(EMISSIONS.schema), by_decision(sums))


class ImplausibleMass(InvalidInput):
    """An entry and its factor cannot both be right."""

    reason_code = "implausible_mass"

    def __init__(self, data_entry_type: str, entry_key: int, mg: int, entry: str = "") -> None:
        super().__init__(
            f"{entry or f'entry {entry_key}'} of {data_entry_type} would cause "
            f"{mg / 1e9:,.0f} tonnes or more",
            remedy="look at its amount and at the factor's unit, and upload the wrong one again",
        )
        self.data_entry_type = data_entry_type
        self.entry_key = entry_key
        self.mg = mg


class ImplausibleSum(InvalidInput):
    """Each entry may be right by itself; all of them cannot be."""

    reason_code = "implausible_mass"

    def __init__(self, data_entry_type: str, year: int, mg: float) -> None:
        super().__init__(
            f"all entries of {data_entry_type} {year} together would cause {mg / 1e9:,.0f} tonnes",
            remedy="look at the unit of its amounts and of its factors, and upload the wrong file again",
        )
