"""Swapping data files in one snapshot. With data_files.py the one place that uses pyiceberg's private parts.

pyiceberg's public `overwrite` makes two snapshots, the first without the day: whoever reads as of a moment
between them reads a hole. And its retry loop rebases a stale change onto a newer table, where ours must be
computed again. `check_private_parts` says loudly when an upgrade moves what is used here; a test calls it.
"""

# ruff: noqa: SLF001
from __future__ import annotations

import atexit
import gc
import inspect
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from resources.lake.data_files import used_of_pyiceberg, write_files
from resources.lake.error import CommitConflict

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table as IcebergTable


def is_imported() -> bool:
    """Whether this process has what a first commit needs: a second of imports."""
    return "pyiceberg.catalog.sql" in sys.modules and "pyiceberg.table.update.snapshot" in sys.modules


def import_iceberg() -> None:
    import pyiceberg.catalog.sql
    import pyiceberg.io.pyarrow
    import pyiceberg.table.update.snapshot  # noqa: F401

    # What packages made of themselves lives as long as the process. To walk it takes the cycle collector four
    # times as long as a commit takes, and while it does others wait for the table. At the end it is let go:
    # else DuckDB takes its own for leaked, and says so.
    gc.freeze()
    atexit.register(gc.unfreeze)


def write_data_files(stored: IcebergTable, frame: pa.Table) -> list[DataFile]:
    """Write the rows as Parquet files of the table's layout. Nothing refers to them yet."""
    return write_files(stored, frame) if frame.num_rows else []


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
    for data_file in drop:
        producer.delete_data_file(data_file)
    for data_file in add:
        producer.append_data_file(data_file)
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


def discard(stored: IcebergTable, files: Sequence[DataFile]) -> None:
    """Delete data files that no snapshot got to refer to."""
    for data_file in files:
        stored.io.delete(data_file.file_path)


def _transaction(stored: IcebergTable) -> Any:
    """pyiceberg copies the whole metadata, every snapshot of it, each time a transaction is asked for it:
    some twenty times a commit, which after 300 commits is most of a commit's time."""
    from pyiceberg.table import Transaction

    class StillTransaction(Transaction):  # type: ignore[misc]
        @property
        def table_metadata(self) -> Any:
            return super().table_metadata if self._updates else self._table.metadata

    return StillTransaction(stored)


def _merging_overwrite() -> Any:
    """pyiceberg merges small manifests on append only; a table that is mostly replaced needs it too."""
    from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles

    class MergingOverwrite(_OverwriteFiles):  # type: ignore[misc]
        _target_size_bytes = 8 * 1024 * 1024
        _min_count_to_merge = 20
        _merge_enabled = True

        def _existing_manifests(self) -> Any:
            # Manifests that only tell what an earlier snapshot deleted are of no use to this one.
            return [m for m in super()._existing_manifests() if m.has_added_files() or m.has_existing_files()]

        def _process_manifests(self, manifests: Any) -> Any:
            return _MergeAppendFiles._process_manifests(self, manifests)

    return MergingOverwrite


def check_private_parts() -> list[str]:
    """What this module relies on and pyiceberg no longer has; empty if all is well."""
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table import Transaction
    from pyiceberg.table.update import snapshot

    expected: list[tuple[str, Any, set[str]]] = [
        *used_of_pyiceberg(),
        ("Table._do_commit", IcebergTable._do_commit, {"self", "updates", "requirements"}),
        (
            "_SnapshotProducer.__init__",
            snapshot._SnapshotProducer.__init__,
            {"operation", "transaction", "io"},
        ),
        ("_OverwriteFiles._existing_manifests", snapshot._OverwriteFiles._existing_manifests, {"self"}),
        (
            "_MergeAppendFiles._process_manifests",
            snapshot._MergeAppendFiles._process_manifests,
            {"self", "manifests"},
        ),
        (
            "_SnapshotProducer._clean_all_uncommitted",
            snapshot._SnapshotProducer._clean_all_uncommitted,
            {"self"},
        ),
    ]
    moved = [
        f"{name}: parameters are now {sorted(inspect.signature(function).parameters)}"
        for name, function, parameters in expected
        if not parameters <= set(inspect.signature(function).parameters)
    ]
    fresh = inspect.getsource(Transaction.__init__)
    return moved + [
        f"Transaction.{name} is gone" for name in ("_updates", "_requirements") if name not in fresh
    ]
