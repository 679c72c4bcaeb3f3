"""What a write puts into partitions: rows, or files that are written already."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from domain.shared.table import ABSENT, Table, Version
from resources.lake import iceberg_commit
from resources.lake.content_hash import versions_of
from resources.lake.frame import ordered
from resources.lake.layout import parse_partition
from resources.lake.partition_writer import WrittenPartition

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table as IcebergTable


@dataclass(frozen=True)
class Rows:
    """Rows for some partitions; a partition without rows is emptied."""

    partitions: tuple[str, ...]
    frame: pa.Table
    made: Mapping[str, Version]
    used: Collection[str] = ()

    @classmethod
    def of(cls, table: Table, partitions: tuple[str, ...], frame: pa.Table) -> Rows:
        return cls(partitions, frame, versions_of(table, [frame]))

    @property
    def versions(self) -> Mapping[str, Version]:
        """By partition; ABSENT of one that is emptied."""
        return {p: self.made.get(p, ABSENT) for p in self.partitions}

    def write(self, stored: IcebergTable, table: Table, kept: pa.Table) -> list[DataFile]:
        """Data files of the partitions and of the rows to keep. No snapshot refers to them yet."""
        rows = pa.concat_tables([kept, self.frame]) if kept.num_rows else self.frame
        return iceberg_commit.write_data_files(stored, ordered(table, rows))


@dataclass
class WrittenFiles:
    """Files that are written already, each a whole partition. They are kept for another attempt."""

    written: Sequence[WrittenPartition]
    used: set[str] = field(default_factory=set)
    """Paths of those that the last attempt has committed, or may have."""

    @property
    def versions(self) -> Mapping[str, Version]:
        return {w.partition: w.version for w in self.written}

    def write(self, stored: IcebergTable, table: Table, kept: pa.Table) -> list[DataFile]:
        chosen = [w for w in self.written if w.num_rows]
        self.used = {w.path for w in chosen}
        files = [
            iceberg_commit.data_file(stored, w.path, parse_partition(table, w.partition)) for w in chosen
        ]
        return [*files, *iceberg_commit.write_data_files(stored, ordered(table, kept))]


Content = Rows | WrittenFiles
"""What some partitions hold from now on."""
