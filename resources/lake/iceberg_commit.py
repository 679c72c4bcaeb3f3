"""Data files and snapshots through pyiceberg: the one module that uses its private parts.

pyiceberg's public `overwrite` makes two snapshots, the first without the replaced partition: a reader as of a
moment between them reads a hole. And its retry loop rebases a stale change onto a newer table, where ours
must be computed again. A test fails at each upgrade of pyiceberg: then compare what is used here.
"""

# ruff: noqa: SLF001
from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from resources.lake.error import CommitConflict

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table as IcebergTable


def import_iceberg() -> None:
    """Import what a first commit needs: a second that no writer should wait for under a table's lock."""
    if "pyiceberg.table.update.snapshot" in sys.modules and "pyiceberg.catalog.sql" in sys.modules:
        return
    import pyiceberg.catalog.sql
    import pyiceberg.io.pyarrow
    import pyiceberg.table.update.snapshot  # noqa: F401

    # Imported objects live as long as the process, and a cycle collection over them takes four times as long
    # as a commit, while others wait for the table. Unfrozen at exit: else DuckDB reports its own objects as
    # leaked.
    gc.freeze()
    atexit.register(gc.unfreeze)


def write_data_files(stored: IcebergTable, frame: pa.Table) -> list[DataFile]:
    """Write the rows as Parquet files of the table's layout. No snapshot refers to them yet."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    if not frame.num_rows:
        return []
    made = list(_dataframe_to_data_files(stored.metadata, frame, stored.io))
    for file in made:
        file.spec_id = stored.metadata.default_spec_id  # set by pyiceberg only where it reads manifests
    return made


def data_file(stored: IcebergTable, path: str, partition_values: Sequence[Any]) -> DataFile:
    """A Parquet file that is there already and holds a whole partition, with the statistics of its footer."""
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
    fields = [PartitionFieldValue(f, v) for f, v in zip(stored.spec().fields, partition_values, strict=True)]
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


def find_data_files(stored: IcebergTable, paths: Collection[str]) -> list[DataFile]:
    """The manifest entries of some current data files."""
    if not paths:
        return []
    wanted = set(paths)
    found: dict[str, DataFile] = {}
    snapshot = stored.current_snapshot()
    for manifest in snapshot.manifests(stored.io) if snapshot is not None else ():
        for entry in manifest.fetch_manifest_entry(stored.io, discard_deleted=True):
            if entry.data_file.file_path in wanted:
                found[entry.data_file.file_path] = entry.data_file
        if len(found) == len(wanted):
            break
    if len(found) != len(wanted):
        raise CommitConflict(f"{'.'.join(stored.name())}: files to replace are no longer part of the table")
    return list(found.values())


def swap_files(stored: IcebergTable, *, add: Sequence[DataFile], drop: Sequence[DataFile]) -> int:
    """Commit one snapshot that drops and adds files; its id. Raises CommitConflict if the table moved on."""
    from pyiceberg.exceptions import CommitFailedException, ValidationException
    from pyiceberg.table.snapshots import Operation
    from pyiceberg.table.update import AssertTableUUID

    transaction = _transaction(stored)
    producer = _merging_overwrite()(
        operation=Operation.OVERWRITE if drop else Operation.APPEND, transaction=transaction, io=stored.io
    )
    for file in drop:
        producer.delete_data_file(file)
    for file in add:
        producer.append_data_file(file)
    try:
        producer.commit()  # staged in the transaction only
        requirements = (*transaction._requirements, AssertTableUUID(uuid=stored.metadata.table_uuid))
        # One attempt: a table that moved on is read again and the change computed anew by the caller.
        stored._do_commit(updates=transaction._updates, requirements=requirements)
    except (CommitFailedException, ValidationException) as error:
        producer._clean_all_uncommitted()
        raise CommitConflict(f"{'.'.join(stored.name())}: changed by another writer") from error
    snapshot_id: int = producer.snapshot_id
    return snapshot_id


def delete_data_files(stored: IcebergTable, files: Sequence[DataFile]) -> None:
    """Delete files that no snapshot refers to."""
    for file in files:
        stored.io.delete(file.file_path)


def _transaction(stored: IcebergTable) -> Any:
    """pyiceberg copies the whole metadata, every snapshot of it, each time a transaction is asked for it:
    some twenty times a commit, which after 300 commits is most of a commit's time."""
    from pyiceberg.table import Transaction

    class CachingTransaction(Transaction):  # type: ignore[misc]
        @property
        def table_metadata(self) -> Any:
            return super().table_metadata if self._updates else self._table.metadata

    return CachingTransaction(stored)


def _merging_overwrite() -> Any:
    """pyiceberg merges small manifests on append only; a table that is mostly replaced needs it too."""
    from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles

    class MergingOverwrite(_OverwriteFiles):  # type: ignore[misc]
        _target_size_bytes = 8 * 1024 * 1024
        _min_count_to_merge = 20
        _merge_enabled = True

        def _existing_manifests(self) -> Any:
            # Manifests that only list what an earlier snapshot deleted are of no use to this one.
            return [m for m in super()._existing_manifests() if m.has_added_files() or m.has_existing_files()]

        def _process_manifests(self, manifests: Any) -> Any:
            return _MergeAppendFiles._process_manifests(self, manifests)

    return MergingOverwrite
