"""The carbon tables. Masses are whole milligrams: their sums are the same in every order and every run."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pyarrow as pa

from domain.shared.packaged import packaged
from domain.shared.table import Column, Table

DECADE = timedelta(days=3653)
"""Reports are read as they were years ago; these tables are small and change seldom."""

_text = partial(Column, type=pa.string(), nullable=False)
_maybe_text = partial(Column, type=pa.string())
_whole = partial(Column, type=pa.int64(), nullable=False)
_small = partial(Column, type=pa.int32(), nullable=False)
_moment = partial(Column, type=pa.timestamp("us", tz="UTC"))
_mass = partial(Column, type=pa.int64(), unit="mg CO2e", nullable=False)
_count = partial(Column, type=pa.int64(), unit="entries", nullable=False)

_YEAR = _small("year", description="Reporting year")
_TYPE = _text("data_entry_type", description="Type of data entry, of the catalogue")
_MODULE = _text("module", description="Module of the catalogue")
_EMISSION = _text("emission_type", description="Kind of emissions, of the catalogue")
_UNIT = _text("unit_id", description="Organisational unit")
_FACTOR = _whole("factor_id", description="The factor's number: the same for its identity for ever")
_VERSION = _small("version", description="Number of its value, from 1")
_FOR = _text("classification", description="What it is for, canonical JSON")
_VALUE = Column("value", pa.float64(), "Mass of CO2e for one unit of quantity", "as in unit", nullable=False)
_ORIGIN = _maybe_text("source", description="Where the value comes from")
_LAST_JOB = _whole("last_seen_job_id", description="The work that last brought it")
_SCOPE = _small("scope", description="Scope of the GHG Protocol")
_FILE = _maybe_text("file", description="The file it came in, by the first half of its SHA-256")
_LINE = Column("line", pa.int64(), "Line of that file")

_by_year = partial(Table, partition_kind="year", partition_columns=("year",), history=DECADE)

UNITS = _by_year(
    name="carbon.units",
    description="The organisational units of a year, as a tree: a reorganisation rewrites no old report.",
    columns=(
        _YEAR,
        _text("institution", description="Whose tree it is"),
        _UNIT,
        _maybe_text("parent_id", description="The unit above; none at the top"),
        _text("name", description="Name"),
        _LAST_JOB,
    ),
    key=("year", "unit_id"),
)

FACTORS = _by_year(
    name="carbon.factors",
    description="Emission factors of a year with their newest values. What a new file lacks is stale.",
    columns=(
        _YEAR,
        _FACTOR,
        _TYPE,
        _EMISSION,
        _FOR,
        _VALUE,
        _text("unit", description="What the value counts, for example kg/kWh"),
        _ORIGIN,
        _VERSION,
        Column("stale", pa.bool_(), "Not in the latest file; still used", nullable=False),
        _LAST_JOB,
    ),
    key=("year", "factor_id"),
    sort=("data_entry_type", "emission_type", "classification"),
)

FACTOR_VERSIONS = _by_year(
    name="carbon.factor_versions",
    description="Every value a factor ever had, from when until when, and the line that brought it.",
    columns=(
        _YEAR,
        _FACTOR,
        _small("version", description="Number of the value, from 1"),
        _TYPE,
        _EMISSION,
        _FOR,
        _VALUE,
        _text("unit", description="What the value counts"),
        _ORIGIN,
        _moment("valid_from", description="When it was uploaded", nullable=False),
        _moment("valid_to", description="When another value was; none while it is the newest"),
        _FILE,
        _LINE,
        _whole("job_id", description="The work that brought it"),
    ),
    key=("year", "factor_id", "version"),
)

DATA_ENTRIES = Table(
    name="carbon.data_entries",
    description="What units did in a year: quantities, each with the words that choose its factor.",
    columns=(
        _YEAR,
        _TYPE,
        _whole("entry_key", description="The entry as a number, derived from its source and its id"),
        _text("entry_id", description="Its id in the file, or its line"),
        _text("institution", description="Whose entry it is"),
        _text("source", description="csv, api or manual"),
        _UNIT,
        Column("quantity", pa.float64(), "The amount with all that multiplies it", "as in unit", False),
        _text("unit", description="Unit of the quantity"),
        _text("classification", description="The words that choose the factor, canonical JSON"),
        Column(
            "kg_co2eq",
            pa.float64(),
            "A mass that was measured: it takes the place of the calculation",
            "kg CO2e",
        ),
        _maybe_text("note", description="Whatever the file says of it"),
        _text("details", description="The file's own columns, JSON"),
        _FILE,
        _LINE,
    ),
    key=("data_entry_type", "year", "entry_key"),
    partition_kind="category_year",
    partition_columns=("data_entry_type", "year"),
)

EMISSIONS = Table(
    name="carbon.data_entry_emissions",
    description="What each entry causes, a row per kind of emissions, with the factor that was used.",
    columns=(
        _YEAR,
        _TYPE,
        _whole("entry_key", description="The entry"),
        _EMISSION,
        _UNIT,
        _text("status", description="matched, overridden, or unmatched: no factor, and so no mass"),
        _mass("mg_co2e", description="Mass of CO2e; none where nothing matched", nullable=True),
        Column("factor_id", pa.int64(), "The factor it was calculated with"),
        Column("factor_version", pa.int32(), "Which of the factor's values"),
    ),
    key=("data_entry_type", "year", "entry_key", "emission_type"),
    sums=packaged(__file__, "emissions_sums"),
    # A partition is a file of its own and read whole: groups as large as DuckDB writes them by default.
    properties={"write.parquet.row-group-limit": "122880"},
    partition_kind="category_year",
    partition_columns=("data_entry_type", "year"),
)

REPORT_MODULES = Table(
    name="carbon.carbon_report_modules",
    description="Per unit, what the entries of one module cause: the unit's own, without those below it.",
    columns=(
        _YEAR,
        _MODULE,
        _UNIT,
        _TYPE,
        _EMISSION,
        _SCOPE,
        _mass("mg_co2e", description="Mass of CO2e"),
        _count("entries", description="Entries"),
        _count("unmatched", description="Entries without a factor: they are missing in the mass"),
        _count("overridden", description="Entries whose mass was measured"),
    ),
    key=("module", "year", "unit_id", "data_entry_type", "emission_type"),
    partition_kind="category_year",
    partition_columns=("module", "year"),
    history=DECADE,
)

REPORTS = _by_year(
    name="carbon.carbon_reports",
    description="The report of a year: per unit, module and scope, alone and with all units below.",
    columns=(
        _YEAR,
        _UNIT,
        _MODULE,
        _SCOPE,
        _mass("own_mg", description="The unit's own mass of CO2e"),
        _mass("total_mg", description="The same with all units below"),
        _count("own_results", description="The unit's own results: one per entry and kind of emissions"),
        _count("total_results", description="The same with all units below"),
        _count("own_unmatched", description="Of its own entries those without a factor"),
        _count("total_unmatched", description="The same with all units below"),
    ),
    key=("year", "unit_id", "module", "scope"),
)

TABLES = (UNITS, FACTORS, FACTOR_VERSIONS, DATA_ENTRIES, EMISSIONS, REPORT_MODULES, REPORTS)


def name_of(partition: str) -> str:
    """Return the type or module of `plane|2025`."""
    return partition.partition("|")[0]


def year_of(partition: str) -> int:
    """Return the year of `2025` and of `plane|2025`."""
    return int(partition.rpartition("|")[2])
