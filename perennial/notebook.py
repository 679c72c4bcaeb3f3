"""Read what Perennial keeps, from a notebook or any program: `perennial.lake().sql("SELECT …").df()`.

Nothing here writes to the lake, waits for a lock or imports Dagster. docs/reading.md has examples.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyiceberg.catalog import Catalog

    from orchestration.reading import Reader


class Answer:
    """The rows that a statement has."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def arrow(self) -> pa.Table:
        return self._rows

    def df(self) -> pd.DataFrame:
        """A pandas DataFrame; dates are datetime64."""
        return self._rows.to_pandas(date_as_object=False)

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._rows.to_pylist()
        return found

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __repr__(self) -> str:
        return repr(self.df())

    def _repr_html_(self) -> str:
        return self.df().to_html(max_rows=20, show_dimensions=True)


class Lake:
    """The tables of one home, to be read. Every statement sees the newest commit of each table."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def sql(self, query: str, *, as_of: datetime | str | None = None) -> Answer:
        """The answer to one reading statement, in DuckDB's SQL; `as_of` a moment, UTC if it names no zone."""
        from orchestration.dates import parse_moment

        return Answer(self._reader.sql(query, parse_moment(str(as_of)) if as_of else None))

    def tables(self) -> list[str]:
        """The names of all tables and views; `sql("SHOW TABLES")` and `sql("DESCRIBE name")` say more."""
        return [str(name) for name in self._reader.overview()["name"].to_pylist()]

    def catalog_properties(self) -> dict[str, str]:
        """What `pyiceberg.catalog.load_catalog("perennial", **properties)` needs. May hold a password."""
        return self._reader.location.properties

    def catalog(self) -> Catalog:
        """The Iceberg catalogue. Only read through it: what it writes, the platform takes for damage."""
        from pyiceberg.catalog import load_catalog

        from resources.lake.location import CATALOG_NAME

        return load_catalog(CATALOG_NAME, **self.catalog_properties())


def lake(home: str | Path | None = None) -> Lake:
    """The lake of a home: of PERENNIAL_HOME, else of this checkout or folder, as with the command."""
    from orchestration.environments import load_settings
    from orchestration.reading import Reader

    reader = Reader(load_settings(home=home))
    reader.require_lake()
    return Lake(reader)
