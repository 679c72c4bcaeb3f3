"""What a write puts into partitions: rows that are written at the commit, or files that are written
already."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from domain.shared.table import ABSENT, Table, Version
from resources.lake import iceberg_commit
from resources.lake.content_hash import versions_of
from resources.lake.frame import ordered, partitions_of, select_partitions
from resources.lake.layout import group_of, parse_partition
from resources.lake.partition_writer import WrittenPartition

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table as IcebergTable


@dataclass(frozen=True)
class Added:
    """Data files that no snapshot refers to yet."""

    files: list[DataFile]
    days: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)
    """By layout group the days in it, where they are known."""


class Content(Protocol):
    """What some partitions hold from now on."""

    @property
    def versions(self) -> Mapping[str, Version]:
        """By partition; ABSENT of one that is emptied."""

    def write(self, stored: IcebergTable, table: Table, changed: Collection[str], kept: pa.Table) -> Added:
        """Data files of the changed partitions and of the rows to keep."""

    def discard(self, stored: IcebergTable, added: Added) -> None:
        """Delete the files of a change that was not committed and may be tried again."""


@dataclass(frozen=True)
class Rows:
    """Rows for some partitions; a partition without rows is emptied."""

    partitions: tuple[str, ...]
    frame: pa.Table
    made: Mapping[str, Version]

    @classmethod
    def of(cls, table: Table, partitions: tuple[str, ...], frame: pa.Table) -> Rows:
        return cls(partitions, frame, versions_of(table, [frame]))

    @property
    def versions(self) -> Mapping[str, Version]:
        return {p: self.made.get(p, ABSENT) for p in self.partitions}

    def write(self, stored: IcebergTable, table: Table, changed: Collection[str], kept: pa.Table) -> Added:
        whole = set(self.made) <= set(changed)
        rows = self.frame if whole else select_partitions(table, self.frame, changed)
        return _write_rows(stored, table, pa.concat_tables([kept, rows]) if kept.num_rows else rows)

    def discard(self, stored: IcebergTable, added: Added) -> None:
        iceberg_commit.delete_data_files(stored, added.files)


@dataclass
class WrittenFiles:
    """Files that are written already, each a whole partition. They are kept for another attempt."""

    written: Sequence[WrittenPartition]
    used: set[str] = field(default_factory=set)
    """Paths that the last attempt has committed, or may have."""

    @property
    def versions(self) -> Mapping[str, Version]:
        return {w.partition: w.version for w in self.written}

    def write(self, stored: IcebergTable, table: Table, changed: Collection[str], kept: pa.Table) -> Added:
        chosen = [w for w in self.written if w.partition in changed and w.num_rows]
        self.used = {w.path for w in chosen}
        files = [
            iceberg_commit.data_file(stored, w.path, parse_partition(table, w.partition)) for w in chosen
        ]
        return Added([*files, *_write_rows(stored, table, kept).files])

    def discard(self, stored: IcebergTable, added: Added) -> None:
        own, self.used = self.used, set()
        iceberg_commit.delete_data_files(stored, [f for f in added.files if f.file_path not in own])


def _write_rows(stored: IcebergTable, table: Table, frame: pa.Table) -> Added:
    rows = ordered(table, frame)
    days: dict[str | None, list[str]] = {}
    for day in partitions_of(table, rows) if table.partition_kind == "day" else ():
        days.setdefault(group_of(table, day), []).append(day)
    files = iceberg_commit.write_data_files(stored, rows)
    return Added(files, {group: tuple(found) for group, found in days.items()})
