"""Writing rows as Parquet files of a table's layout, with the statistics that Iceberg keeps of each.

pyiceberg's own writer copies the frame four times and knows no encoded columns; what is taken from it are the
names, settings and statistics, so that its files and ours are alike. See commit.py for what is private of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from domain.shared.abreast import abreast
from resources.lake.repeats import decoded, is_encoded, numbers, repeats_much, words_of

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table as IcebergTable

ROWS_PER_FILE = 2_500_000
"""Of one partition: more are several files, so that both cores write."""
_LONGEST_LIST = 8192
"""A row group keeps the whole list of an encoded column: a longer one is made anew for each."""


@dataclass(frozen=True)
class _Part:
    """Rows that are laid out together, and their values of the layout's fields."""

    values: tuple[Any, ...]
    rows: pa.Table


def write_files(stored: IcebergTable, frame: pa.Table) -> list[DataFile]:
    """Write the rows; a file for each part of the layout, or several. Nothing refers to them yet."""
    schema = _file_schema(stored, frame)
    frame = pa.Table.from_arrays([frame.column(name) for name in schema.names], schema=schema)
    jobs = [
        (number, _Part(part.values, part.rows.slice(start, ROWS_PER_FILE)))
        for number, (part, start) in enumerate(
            (part, start)
            for part in _parts(stored, frame)
            for start in range(0, part.rows.num_rows, ROWS_PER_FILE)
        )
    ]
    together = uuid.uuid4()
    return abreast(lambda job: _write(stored, f"00000-{job[0]}-{together}", job[1]), jobs)


def _file_schema(stored: IcebergTable, frame: pa.Table) -> pa.Schema:
    """The frame's own types under Iceberg's field ids."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    fields = schema_to_pyarrow(stored.schema(), include_field_ids=True)
    return pa.schema(
        [pa.field(f.name, frame.schema.field(f.name).type, f.nullable, f.metadata) for f in fields]
    )


def _parts(stored: IcebergTable, frame: pa.Table) -> Iterator[_Part]:
    """The frame cut by the layout. Rows in order need no copy: each part is a slice."""
    labels, values = _labels(stored, frame)
    if len(values) == 1:
        yield _Part(values[0], frame)
        return
    bounds = [0, *(np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist(), frame.num_rows]
    in_one_piece = len(bounds) - 1 == len(values)
    for number, of in enumerate(values):
        if in_one_piece:
            [start] = [b for b in bounds[:-1] if labels[b] == number]
            yield _Part(of, frame.slice(start, bounds[bounds.index(start) + 1] - start))
        else:
            yield _Part(of, frame.filter(pa.array(labels == number)))


def _labels(stored: IcebergTable, frame: pa.Table) -> tuple[Any, list[tuple[Any, ...]]]:
    """Of each row the number of its part, and the parts' values; every part has rows."""
    schema = stored.schema()
    label = np.zeros(frame.num_rows, dtype=np.int64)
    values: list[tuple[Any, ...]] = [()]
    for field in stored.spec().fields:
        source = schema.find_field(field.source_id)
        words, places = words_of(frame.column(source.name))
        transformed = field.transform.pyarrow_transform(source.field_type)(words)
        laid_out, which = words_of(pa.chunked_array([transformed]))
        values = [(*before, word) for before in values for word in laid_out.to_pylist()]
        if len(laid_out) > 1:
            label = label * len(laid_out) + numbers(which)[numbers(places)]
    present = np.flatnonzero(np.bincount(label)) if len(values) > 1 else np.zeros(1, dtype=np.int64)
    places_of = np.zeros(len(values), dtype=np.int64)
    places_of[present] = np.arange(len(present))
    return places_of[label] if len(present) > 1 else label, [values[n] for n in present]


def _write(stored: IcebergTable, name: str, part: _Part) -> DataFile:
    import pyarrow.parquet as pq
    from pyiceberg.io import pyarrow as reading
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
    from pyiceberg.table.locations import load_location_provider
    from pyiceberg.typedef import Record

    metadata, schema = stored.metadata, stored.schema()
    fields = [PartitionFieldValue(f, v) for f, v in zip(stored.spec().fields, part.values, strict=True)]
    key = PartitionKey(fields, stored.spec(), schema) if fields else None
    places = load_location_provider(table_location=metadata.location, table_properties=metadata.properties)
    path = places.new_data_location(data_file_name=f"{name}.parquet", partition_key=key)
    target = stored.io.new_output(path)
    rows, group = _writable(part.rows), int(metadata.properties["write.parquet.row-group-limit"])
    with target.create(overwrite=True) as stream:
        writer = pq.ParquetWriter(
            stream,
            rows.schema,
            store_decimal_as_integer=True,
            store_schema=False,  # it would tell readers of our encoding, which is nobody's matter
            use_dictionary=[c for c in rows.column_names if repeats_much(rows.column(c))],
            **reading._get_parquet_writer_kwargs(metadata.properties),  # noqa: SLF001
        )
        with writer:
            writer.write_table(rows, row_group_size=group)
    statistics = reading.data_file_statistics_from_parquet_metadata(
        parquet_metadata=writer.writer.metadata,
        stats_columns=reading.compute_statistics_plan(schema, metadata.properties),
        parquet_column_mapping=reading.parquet_path_to_id_mapping(schema),
    )
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=key.partition if key is not None else Record(),
        file_size_in_bytes=len(target),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    made.spec_id = metadata.default_spec_id  # set by pyiceberg only where it reads manifests
    return made


def _writable(rows: pa.Table) -> pa.Table:
    """Lists that are long are not written with each row group."""
    for place, (field, column) in enumerate(zip(rows.schema, rows.columns, strict=True)):
        if is_encoded(field.type) and any(len(c.dictionary) > _LONGEST_LIST for c in column.chunks[:1]):
            values = decoded(column)
            rows = rows.set_column(place, field.with_type(values.type), values)
    return rows


def used_of_pyiceberg() -> Sequence[tuple[str, Any, set[str]]]:
    """What is taken from pyiceberg here, with the parameters it must have."""
    from pyiceberg.io import pyarrow as reading

    return [
        ("io.pyarrow._get_parquet_writer_kwargs", reading._get_parquet_writer_kwargs, {"table_properties"}),  # noqa: SLF001
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
        ("io.pyarrow.schema_to_pyarrow", reading.schema_to_pyarrow, {"schema", "include_field_ids"}),
    ]
