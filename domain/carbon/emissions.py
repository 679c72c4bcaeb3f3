"""From entries and factors to masses: whole milligrams per row. The formula is sql/emissions.sql.

The milligrams that one unit causes are looked up once for each classification and unit (rates.py), and
joined.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import EntryType
from domain.carbon.rates import rates, units
from domain.carbon.tables import EMISSIONS
from domain.shared.compute import connection, register
from domain.shared.error import InvalidInput
from domain.shared.packaged import packaged

MAX_MG = 9_007_199_254_740_992
"""The mass of one result: nine million tonnes. A larger one is a mistake in an amount or a factor, and beyond
it doubles no longer hold whole milligrams."""
MAX_MG_OF_TYPE = 100_000_000_000_000_000
"""The mass of all results of a type and year: a hundred million tonnes. Each may be plausible by itself, and
the sums of all types together have to fit into the tables."""

UNMATCHED = "unmatched"
"""Key in a record's detail: how many results have no factor."""

FORMULA = packaged(__file__, "emissions")
_PAIRS_AND_UNITS = """
    SELECT classification, unit, unit_id, count(*) AS entries FROM entries
    GROUP BY GROUPING SETS ((classification, unit), (unit_id)) ORDER BY ALL
"""
# Not `NOT abs(x) <= m`: from a file's statistics, which leave NaN out, DuckDB concludes that there is none.
_TOO_LARGE = f"NOT isfinite(exact_mg) OR abs(exact_mg) > {MAX_MG}"
_IMPLAUSIBLE = f"SELECT entry_key, exact_mg FROM ({FORMULA}) WHERE {_TOO_LARGE} LIMIT 1"


class Written(Protocol):
    """Rows that a formula made, in memory or in a file."""

    @property
    def sums(self) -> pa.Table:
        """The result of emissions_sums.sql over them."""


W_co = TypeVar("W_co", bound=Written, covariant=True)


class Session(Protocol[W_co]):
    """Statements over the relation `entries` of one type and year, and over registered ones."""

    def query(self, sql: str) -> pa.Table: ...
    def register(self, name: str, table: pa.Table) -> None: ...
    def write(self, rows: str) -> W_co: ...


def calculate(kind: EntryType, year: int, factors: pa.Table, session: Session[W_co]) -> W_co:
    """What the entries of a type and year cause, with the factors of that year."""
    found = session.query(_PAIRS_AND_UNITS)
    of_pair = pc.is_null(found.column("unit_id"))
    pairs, names = found.filter(of_pair), found.filter(pc.invert(of_pair))
    known = list(zip(*(pairs.column(n).to_pylist() for n in ("classification", "unit")), strict=True))
    session.register("rates", rates(kind, year, known, factors))
    session.register("units", units(names.column("unit_id").combine_chunks()))
    try:
        written = session.write(FORMULA)
    except duckdb.ConversionException as error:
        if (found := _implausible(kind, session)) is None:
            raise
        raise found from error
    _check(kind, year, sum(pairs.column("entries").to_pylist()), written.sums, session)
    return written


def sums_by_decision(sums: pa.Table) -> pa.Table:
    """Of the sums those by emission type, status and factor: a few dozen rows instead of millions."""
    return sums.filter(pc.is_null(sums.column("unit_id")))


def _check(kind: EntryType, year: int, entries: int, sums: pa.Table, session: Session[Any]) -> None:
    """Raise if the results cannot be right, one of them or all together. Each entry has one result of each
    emission type that is counted, or a single one if its mass was measured: none is lost, none comes
    twice."""
    counted: Counter[str] = Counter()
    groups = sums_by_decision(sums)
    for row in groups.to_pylist():
        counted["" if row["status"] == "overridden" else row["emission_type"]] += row["results"]
    measured = counted.pop("", 0)
    if {n + measured for n in counted.values()} - {entries} or (not counted and measured != entries):
        raise AssertionError(
            f"{kind.name} {year}: {entries} entries, and results {counted}, {measured} measured"
        )
    if (pc.max(groups.column("largest")).as_py() or 0) > MAX_MG and (found := _implausible(kind, session)):
        raise found
    if (whole := int(sum(mg or 0 for mg in groups.column("mg_co2e").to_pylist()))) > MAX_MG_OF_TYPE:
        raise ImplausibleSum(kind.name, year, whole)


def _implausible(kind: EntryType, session: Session[Any]) -> ImplausibleMass | None:
    """An entry whose mass is larger than it can be, or no number; None if there is none."""
    found = session.query(_IMPLAUSIBLE).to_pylist()
    return ImplausibleMass(kind.name, found[0]["entry_key"], found[0]["exact_mg"]) if found else None


@dataclass(frozen=True)
class Results:
    """Emissions in memory: a row per entry and emission type."""

    frame: pa.Table
    sums: pa.Table


@dataclass(frozen=True)
class _InMemory:
    con: duckdb.DuckDBPyConnection

    def query(self, sql: str) -> pa.Table:
        return self.con.sql(sql).to_arrow_table()

    def register(self, name: str, table: pa.Table) -> None:
        register(self.con, name, table)

    def write(self, rows: str) -> Results:
        columns = ", ".join(EMISSIONS.schema.names)
        found = self.query(f"SELECT {columns} FROM ({rows}) ORDER BY entry_key, emission_type::VARCHAR")
        self.con.register("results", found)
        return Results(found.cast(EMISSIONS.schema), self.query(EMISSIONS.sums))


def calculated(kind: EntryType, year: int, entries: pa.Table, factors: pa.Table) -> Results:
    """What these entries cause, without a lake."""
    with connection(entries=entries) as con:
        return calculate(kind, year, factors, _InMemory(con))


def emissions(kind: EntryType, entries: pa.Table, factors: pa.Table) -> pa.Table:
    """The rows of the same, of entries that are all of one year."""
    year = entries.column("year")[0].as_py() if entries.num_rows else 0
    return calculated(kind, year, entries, factors).frame


class ImplausibleMass(InvalidInput):
    """An entry and its factor cannot both be right."""

    reason_code = "implausible_mass"

    def __init__(self, data_entry_type: str, entry_key: int, mg: float, entry: str = "") -> None:
        super().__init__(
            f"{entry or f'entry {entry_key}'} of {data_entry_type} would cause {mg / 1e9:,.0f} tonnes",
            remedy="check its amount and the factor's unit, and upload the wrong one again",
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
            remedy="check the unit of its amounts and of its factors, and upload the wrong file again",
        )
