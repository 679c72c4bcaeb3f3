"""What partitions hold now: their versions, and which there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.shared.table import ABSENT, ALL, Version
from resources.lake.content_hash import versions_of
from resources.lake.damage import READ_ERRORS, faults_of, is_storage_error, query_error
from resources.lake.engine import Engine, quoted
from resources.lake.error import DataCorrupt, DataUnavailable
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.layout import parse_partition, partition_key, sql_filter
from resources.lake.partition_writer import stored_version
from resources.lake.version_cache import VersionCache, file_set_key
from resources.lake.view import View

_FilesOf = Mapping[str, Sequence[FileEntry]]
"""By partition, the files that may hold it."""


@dataclass(frozen=True)
class VersionReader:
    engine: Engine
    cache: VersionCache
    index: FileIndex

    def versions(self, view: View, partitions: Sequence[str]) -> dict[str, Version]:
        """What each partition holds now, from the cache as long as its files are there in their size."""
        for partition in partitions:
            parse_partition(view.table, partition)
        files = {p: view.holding([p]) for p in partitions}
        found = dict.fromkeys(partitions, ABSENT)
        known = self.cache.get(view.table, {p: _key(view, some) for p, some in files.items() if some})
        store = self.engine.store
        cut = {f.path for f in _each(files) if not store.has_size(f.path, f.size)}
        intact = {p: version for p, version in known.items() if cut.isdisjoint(f.path for f in files[p])}
        unknown = {p: some for p, some in files.items() if some and p not in intact}
        return found | intact | (self._compute(view, unknown) if unknown else {})

    def read_versions(self, view: View, partitions: Sequence[str]) -> dict[str, Version]:
        """The same for a writer; raises DataUnavailable where it is not known what is there."""
        found = self.versions(view, partitions)
        for version in found.values():
            if version.unavailable:
                raise DataUnavailable(version.unavailable)
        return found

    def remember(self, view: View, versions: Mapping[str, Version]) -> None:
        """Keep versions that a commit has just made."""
        files = {p: view.holding([p]) for p in versions}
        self.cache.put(view.table, {p: (_key(view, files[p]), v) for p, v in versions.items() if files[p]})

    def _compute(self, view: View, unknown: _FilesOf) -> dict[str, Version]:
        """A file with a fault costs its own partitions, and no others."""
        faults: dict[str, Version] = {}
        found: dict[str, Version] = {}
        while intact := {p: some for p, some in unknown.items() if not any(f.path in faults for f in some)}:
            files = _each(intact)
            try:
                found = self._hash(view, list(intact), files)
                break
            except READ_ERRORS as error:
                new = faults_of(self.engine.store, files)
                if not new and not is_storage_error(error):
                    raise query_error(error) from error
                if not new:  # a store that answers now and then
                    why = DataUnavailable(view.table.name, error).message
                    new = {f.path: Version(0, "", unavailable=why) for f in files}
                faults |= new
        for partition, some in unknown.items():
            if known := [faults[f.path] for f in some if f.path in faults]:
                # Unavailable comes before corrupt: nothing is to be written over it.
                found[partition] = max(known, key=lambda version: bool(version.unavailable))
        found = {p: found.get(p, ABSENT) for p in unknown}
        self.cache.put(view.table, {p: (_key(view, unknown[p]), v) for p, v in found.items()})
        return found

    def _hash(self, view: View, partitions: Sequence[str], files: Sequence[FileEntry]) -> dict[str, Version]:
        only = view.reduced(files)
        if view.table.sums:
            return {p: stored_version(self.engine, only.reduced(only.holding([p])), p) for p in partitions}
        with self.engine.connect() as connection:
            rows = self.engine.relation(connection, only)
            query = f"SELECT * FROM ({rows}) WHERE {sql_filter(view.table, partitions)}"
            return versions_of(view.table, connection.sql(query).to_arrow_reader())

    def partitions(self, view: View) -> list[str]:
        """Every partition that has rows. Files whose days are not known are read once and noted."""
        if view.has_deletes:
            return self._distinct(view)
        noted = tuple(self._with_days(view, file) for file in view.files)
        if noted != view.files:
            self.index.put(view.table, FileList(view.listing.snapshot_id, noted))
        return sorted({p for file in noted for p in file.possible_partitions(view.table)})

    def _with_days(self, view: View, file: FileEntry) -> FileEntry:
        """A file with its days; one that cannot be read stays as it is: its versions explain why."""
        if file.certain_partitions(view.table) is not None:
            return file
        try:
            return replace(file, days=tuple(self._distinct(view.reduced([file]))))
        except (DataCorrupt, DataUnavailable):
            return file

    def _distinct(self, view: View) -> list[str]:
        columns = ", ".join(map(quoted, view.table.partition_columns))
        with self.engine.connect() as connection, self.engine.explained(view):
            rows = self.engine.relation(connection, view)
            if not columns:
                return [ALL] if connection.sql(f"SELECT 1 FROM ({rows}) LIMIT 1").fetchall() else []
            query = f"SELECT DISTINCT {columns} FROM ({rows}) ORDER BY {columns}"
            return [partition_key(values) for values in connection.sql(query).fetchall()]


def _each(files: _FilesOf) -> list[FileEntry]:
    return list({f.path: f for some in files.values() for f in some}.values())


def _key(view: View, files: Iterable[FileEntry]) -> str:
    """Row-level deletes change what a partition holds without changing its data files."""
    key = file_set_key(files)
    return f"{key}@{view.listing.snapshot_id}" if view.has_deletes else key
