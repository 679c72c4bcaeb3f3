"""Reading through pyiceberg: file lists from manifests, and rows under another engine's row-level deletes.

The slow way (importing pyiceberg alone costs a second); taken only where file_index.py and engine.py cannot.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from domain.shared.error import PerennialError
from domain.shared.table import Table
from resources.lake.error import DataUnavailable, metadata_corrupt
from resources.lake.file_index import FileEntry, FileList
from resources.lake.layout import group_from_layout

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable


def read_with_deletes(metadata_location: str, snapshot_id: int, paths: Collection[str]) -> pa.Table:
    """The rows of some data files of a snapshot that its delete files leave."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import StaticTable

    stored = StaticTable.from_metadata(metadata_location)
    tasks = [t for t in stored.scan(snapshot_id=snapshot_id).plan_files() if t.file.file_path in paths]
    return ArrowScan(stored.metadata, stored.io, stored.schema(), AlwaysTrue()).to_table(tasks)


def read_file_list(table: Table, metadata_location: str, snapshot_id: int) -> FileList:
    """A snapshot's file list, from its manifests."""
    from pyiceberg.table import StaticTable

    manifest = f"a manifest of snapshot {snapshot_id}"
    try:
        stored = StaticTable.from_metadata(metadata_location)
        tasks = list(stored.scan(snapshot_id=snapshot_id).plan_files())
        entries = tuple(file_entry(table, stored, task.file) for task in tasks)
    except (PerennialError, FileNotFoundError):
        raise
    except OSError as error:
        raise DataUnavailable(f"{table.name}: {manifest}", error) from error
    except Exception as error:  # the Avro reader fails in any way there is
        raise metadata_corrupt(table.name, manifest) from error
    return FileList(snapshot_id, entries, any(task.delete_files for task in tasks))


def file_entry(table: Table, stored: IcebergTable, data_file: Any) -> FileEntry:
    """Our short note of an Iceberg data file."""
    low = high = group = None
    # A file of an older or foreign layout has no group we know: it may hold any partition.
    fields = len(table.partition_columns)
    if data_file.spec_id == stored.metadata.default_spec_id and len(data_file.partition) == fields:
        group = group_from_layout(table, [data_file.partition[n] for n in range(len(data_file.partition))])
    if table.partition_kind == "day":
        source = stored.schema().find_field(table.partition_columns[0])
        low = _bound(source.field_type, data_file.lower_bounds, source.field_id)
        high = _bound(source.field_type, data_file.upper_bounds, source.field_id)
    return FileEntry(
        path=data_file.file_path,
        size=data_file.file_size_in_bytes,
        rows=data_file.record_count,
        group=group,
        low=low,
        high=high,
    )


def _bound(kind: Any, bounds: dict[int, bytes] | None, field_id: int) -> str | None:
    from datetime import date, timedelta

    from pyiceberg.conversions import from_bytes

    if not bounds or field_id not in bounds:
        return None
    value = from_bytes(kind, bounds[field_id])
    day: date = date(1970, 1, 1) + timedelta(days=value) if isinstance(value, int) else value
    return day.isoformat()
