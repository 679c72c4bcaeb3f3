"""The carbon tables. Masses are whole milligrams: their sums are the same in every order and every run."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from domain.shared.compute import packaged
from domain.shared.table import Column, Table

DECADE = timedelta(days=3653)
"""Reports are read as they were years ago; these tables are small and change seldom."""

_YEAR = Column("year", pa.int32(), "Reporting year", nullable=False)
_TYPE = Column("data_entry_type", pa.string(), "Type of data entry, of the catalogue", nullable=False)
_MODULE = Column("module", pa.string(), "Module of the catalogue", nullable=False)
_EMISSION = Column("emission_type", pa.string(), "Kind of emissions, of the catalogue", nullable=False)
_UNIT = Column("unit_id", pa.string(), "Organisational unit", nullable=False)
_FACTOR = Column(
    "factor_id", pa.int64(), "The factor's number: the same for its identity for ever", nullable=False
)
_FILE = Column("file", pa.string(), "The file it came in, by the first half of its SHA-256")
_LINE = Column("line", pa.int64(), "Line of that file")


def _mass(name: str, description: str, *, nullable: bool = False) -> Column:
    return Column(name, pa.int64(), description, unit="mg CO2e", nullable=nullable)


def _count(name: str, description: str) -> Column:
    return Column(name, pa.int64(), description, unit="entries", nullable=False)


UNITS = Table(
    name="carbon.units",
    description="The organisational units of a year, as a tree: a reorganisation rewrites no old report.",
    columns=(
        _YEAR,
        Column("institution", pa.string(), "Whose tree it is", nullable=False),
        _UNIT,
        Column("parent_id", pa.string(), "The unit above; none at the top"),
        Column("name", pa.string(), "Name", nullable=False),
        Column("last_seen_job_id", pa.int64(), "The work that last brought it", nullable=False),
    ),
    key=("year", "unit_id"),
    partition_kind="year",
    partition_columns=("year",),
    history=DECADE,
)

FACTORS = Table(
    name="carbon.factors",
    description="Emission factors of a year with their newest values. What a new file lacks is stale.",
    columns=(
        _YEAR,
        _FACTOR,
        _TYPE,
        _EMISSION,
        Column("classification", pa.string(), "What it is for, canonical JSON", nullable=False),
        Column(
            "value", pa.float64(), "Mass of CO2e for one unit of quantity", unit="as in unit", nullable=False
        ),
        Column("unit", pa.string(), "What the value counts, for example kg/kWh", nullable=False),
        Column("source", pa.string(), "Where the value comes from"),
        Column("version", pa.int32(), "Number of its value, from 1", nullable=False),
        Column("stale", pa.bool_(), "Not in the latest file; still used", nullable=False),
        Column("last_seen_job_id", pa.int64(), "The work that last brought it", nullable=False),
    ),
    key=("year", "factor_id"),
    partition_kind="year",
    partition_columns=("year",),
    sort=("data_entry_type", "emission_type", "classification"),
    history=DECADE,
)

FACTOR_VERSIONS = Table(
    name="carbon.factor_versions",
    description="Every value a factor ever had, from when until when, and the line that brought it.",
    columns=(
        _YEAR,
        _FACTOR,
        Column("version", pa.int32(), "Number of the value, from 1", nullable=False),
        _TYPE,
        _EMISSION,
        Column("classification", pa.string(), "What it is for, canonical JSON", nullable=False),
        Column(
            "value", pa.float64(), "Mass of CO2e for one unit of quantity", unit="as in unit", nullable=False
        ),
        Column("unit", pa.string(), "What the value counts", nullable=False),
        Column("source", pa.string(), "Where the value comes from"),
        Column("valid_from", pa.timestamp("us", tz="UTC"), "When it was uploaded", nullable=False),
        Column(
            "valid_to", pa.timestamp("us", tz="UTC"), "When another value was; none while it is the newest"
        ),
        _FILE,
        _LINE,
        Column("job_id", pa.int64(), "The work that brought it", nullable=False),
    ),
    key=("year", "factor_id", "version"),
    partition_kind="year",
    partition_columns=("year",),
    history=DECADE,
)

DATA_ENTRIES = Table(
    name="carbon.data_entries",
    description="What units did in a year: quantities, each with the words that choose its factor.",
    columns=(
        _YEAR,
        _TYPE,
        Column(
            "entry_key",
            pa.int64(),
            "The entry as a number, derived from its source and its id",
            nullable=False,
        ),
        Column("entry_id", pa.string(), "Its id in the file, or its line", nullable=False),
        Column("institution", pa.string(), "Whose entry it is", nullable=False),
        Column("source", pa.string(), "csv, api or manual", nullable=False),
        _UNIT,
        Column(
            "quantity",
            pa.float64(),
            "The amount with all that multiplies it",
            unit="as in unit",
            nullable=False,
        ),
        Column("unit", pa.string(), "Unit of the quantity", nullable=False),
        Column(
            "classification", pa.string(), "The words that choose the factor, canonical JSON", nullable=False
        ),
        Column(
            "kg_co2eq",
            pa.float64(),
            "A mass that was measured: it takes the place of the calculation",
            unit="kg CO2e",
        ),
        Column("note", pa.string(), "Whatever the file says of it"),
        Column("details", pa.string(), "The file's own columns, JSON", nullable=False),
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
        Column("entry_key", pa.int64(), "The entry", nullable=False),
        _EMISSION,
        _UNIT,
        Column(
            "status",
            pa.string(),
            "matched, overridden, or unmatched: no factor, and so no mass",
            nullable=False,
        ),
        _mass("mg_co2e", "Mass of CO2e; none where nothing matched", nullable=True),
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
        Column("scope", pa.int32(), "Scope of the GHG Protocol", nullable=False),
        _mass("mg_co2e", "Mass of CO2e"),
        _count("entries", "Entries"),
        _count("unmatched", "Entries without a factor: they are missing in the mass"),
        _count("overridden", "Entries whose mass was measured"),
    ),
    key=("module", "year", "unit_id", "data_entry_type", "emission_type"),
    partition_kind="category_year",
    partition_columns=("module", "year"),
    history=DECADE,
)

REPORTS = Table(
    name="carbon.carbon_reports",
    description="The report of a year: per unit, module and scope, alone and with all units below.",
    columns=(
        _YEAR,
        _UNIT,
        _MODULE,
        Column("scope", pa.int32(), "Scope of the GHG Protocol", nullable=False),
        _mass("own_mg", "The unit's own mass of CO2e"),
        _mass("total_mg", "The same with all units below"),
        _count("own_results", "The unit's own results: one per entry and kind of emissions"),
        _count("total_results", "The same with all units below"),
        _count("own_unmatched", "Of its own entries those without a factor"),
        _count("total_unmatched", "The same with all units below"),
    ),
    key=("year", "unit_id", "module", "scope"),
    partition_kind="year",
    partition_columns=("year",),
    history=DECADE,
)

TABLES = (UNITS, FACTORS, FACTOR_VERSIONS, DATA_ENTRIES, EMISSIONS, REPORT_MODULES, REPORTS)


def year_of(partition: str) -> int:
    """Return the year of `2025` and of `plane|2025`."""
    return int(partition.rpartition("|")[2])
