"""Data files of a table's layout: rows that pyiceberg writes, and files that DuckDB has written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from domain.shared.table import Table
from resources.lake.layout import parse_partition

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table as IcebergTable


def write_files(stored: IcebergTable, frame: pa.Table) -> list[DataFile]:
    """Write the rows; a file for each part of the layout. Nothing refers to them yet."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files  # private, as commit.py tells

    made = list(_dataframe_to_data_files(stored.metadata, frame, stored.io))
    for file in made:
        file.spec_id = stored.metadata.default_spec_id  # set by pyiceberg only where it reads manifests
    return made


def staged_files(stored: IcebergTable, table: Table, paths: Sequence[tuple[str, str]]) -> list[DataFile]:
    """Files that are written already, each a whole partition, with the statistics of their footers."""
    return [_of_footer(stored, path, parse_partition(table, partition)) for path, partition in paths]


def _of_footer(stored: IcebergTable, path: str, values: tuple[Any, ...]) -> DataFile:
    import pyarrow.parquet as pq
    from pyiceberg.io import pyarrow as reading
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.partitioning import PartitionFieldValue, PartitionKey

    metadata, schema, source = stored.metadata, stored.schema(), stored.io.new_input(path)
    with source.open() as stream:
        footer = pq.read_metadata(stream)
    statistics = reading.data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer,
        stats_columns=reading.compute_statistics_plan(schema, metadata.properties),
        parquet_column_mapping=reading.parquet_path_to_id_mapping(schema),
    )
    fields = [PartitionFieldValue(f, v) for f, v in zip(stored.spec().fields, values, strict=True)]
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=PartitionKey(fields, stored.spec(), schema).partition,
        file_size_in_bytes=len(source),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    made.spec_id = metadata.default_spec_id
    return made


def used_of_pyiceberg() -> Sequence[tuple[str, Any, set[str]]]:
    """What is taken from pyiceberg here, with the parameters it must have."""
    from pyiceberg.io import pyarrow as reading

    return [
        (
            "io.pyarrow._dataframe_to_data_files",
            reading._dataframe_to_data_files,  # noqa: SLF001
            {"table_metadata", "df", "io"},
        ),
        (
            "io.pyarrow.data_file_statistics_from_parquet_metadata",
            reading.data_file_statistics_from_parquet_metadata,
            {"parquet_metadata", "stats_columns", "parquet_column_mapping"},
        ),
        (
            "io.pyarrow.compute_statistics_plan",
            reading.compute_statistics_plan,
            {"schema", "table_properties"},
        ),
        ("io.pyarrow.parquet_path_to_id_mapping", reading.parquet_path_to_id_mapping, {"schema"}),
    ]
