"""Whole data files read by Arrow, which takes words as they lie there: as numbers into lists.

DuckDB would spell out the words of each row, to be gathered again. But Arrow finds columns by name and not by
Iceberg's field ids: files that know a column by another name than the table now does are not read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from domain.shared.abreast import abreast
from domain.shared.table import Table
from resources.lake.state import TableState

_FIELD_ID = b"PARQUET:field_id"


def read_files(
    table: Table, state: TableState, filesystem: Any, paths: Sequence[str], columns: Sequence[str]
) -> pa.Table | None:
    """Some columns of all rows of some files, NULL where a file is older than a column. None if a file's
    names are not the table's. Raises whatever Arrow says of files it cannot read, or should not."""
    from pyarrow import dataset

    types = {name: table.schema.field(name).type for name in columns}
    words = [name for name, kind in types.items() if pa.types.is_string(kind)]
    schema = pa.schema({n: pa.dictionary(pa.int32(), k) if n in words else k for n, k in types.items()})
    layout = dataset.ParquetFileFormat(dictionary_columns=words)
    found = dataset.dataset(list(paths), schema=schema, format=layout, filesystem=filesystem)
    ids = {f.name: f.id for f in state.fields}
    wanted = {name: ids.get(name) for name in columns}
    schemas = abreast(lambda file: file.physical_schema, found.get_fragments())  # each is a request elsewhere
    if not all(_names_alike(schema, wanted) for schema in schemas):
        return None
    rows = found.to_table()
    # Arrow itself does not look whether a number has a word in its list: in a file that rotted it may not.
    rows.validate(full=True)
    return rows.unify_dictionaries()


def _names_alike(schema: pa.Schema, wanted: dict[str, int | None]) -> bool:
    """Whether a file has each column under its name, or not at all."""
    names = {int((field.metadata or {}).get(_FIELD_ID, -1)): field.name for field in schema}
    return all(
        names[number] == name if number in names else name not in schema.names
        for name, number in wanted.items()
    )
