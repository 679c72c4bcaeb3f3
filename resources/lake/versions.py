"""What partitions hold now: their versions, and which there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from domain.shared.table import ABSENT, ALL, Version
from resources.lake.content_hash import versions_of
from resources.lake.damage import READ_ERRORS, faults_of
from resources.lake.engine import Engine, quoted
from resources.lake.error import DataCorrupt, DataUnavailable
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.layout import parse_partition, partition_key, sql_filter
from resources.lake.partition_writer import stored_version
from resources.lake.version_cache import VersionCache, file_set_key
from resources.lake.view import View


@dataclass(frozen=True)
class VersionReader:
    engine: Engine
    cache: VersionCache
    index: FileIndex

    def versions(self, view: View, partitions: Sequence[str]) -> dict[str, Version]:
        """What each partition holds now, from the cache as long as its files are there in their size."""
        found: dict[str, Version] = {}
        unknown: dict[str, list[FileEntry]] = {}
        whole: dict[str, bool] = {}
        for partition in partitions:
            parse_partition(view.table, partition)
            files = view.may_hold(partition)
            if not files:
                found[partition] = ABSENT
                continue
            for file in files:
                if file.path not in whole:
                    whole[file.path] = self.engine.store.has_size(file.path, file.size)
            known = self.cache.get(view.table, partition, _key(view, files))
            if known is not None and all(whole[file.path] for file in files):
                found[partition] = known
            else:
                unknown[partition] = files
        if unknown:
            found |= self._compute(view, unknown)
        return {p: found[p] for p in partitions}

    def read_versions(self, view: View, partitions: Sequence[str]) -> dict[str, Version]:
        """The same for a writer; raises DataUnavailable where it is not known what is there."""
        found = self.versions(view, partitions)
        for version in found.values():
            if version.unavailable:
                raise DataUnavailable(version.unavailable)
        return found

    def remember(self, view: View, versions: Mapping[str, Version]) -> None:
        """Keep versions that a commit has just made."""
        files = {p: view.may_hold(p) for p in versions}
        self.cache.put(view.table, {p: (_key(view, files[p]), v) for p, v in versions.items() if files[p]})

    def _compute(self, view: View, unknown: Mapping[str, list[FileEntry]]) -> dict[str, Version]:
        """A file with a fault costs its own partitions, and no others."""
        files = {f.path: f for some in unknown.values() for f in some}
        faults: dict[str, Version] = {}
        try:
            found = self._hash(view, list(unknown), list(files.values()))
        except READ_ERRORS:
            faults = faults_of(self.engine.store, files.values())
            found = self._hash_intact(view, unknown, [f for f in files.values() if f.path not in faults])
        for partition, some in unknown.items():
            if known := [faults[f.path] for f in some if f.path in faults]:
                # Unavailable comes before corrupt: nobody is to write over it.
                found[partition] = max(known, key=lambda version: bool(version.unavailable))
        found = {p: found.get(p, ABSENT) for p in unknown}
        self.cache.put(view.table, {p: (_key(view, unknown[p]), v) for p, v in found.items()})
        return found

    def _hash_intact(
        self, view: View, unknown: Mapping[str, list[FileEntry]], readable: Sequence[FileEntry]
    ) -> dict[str, Version]:
        """The versions of the partitions whose files are all readable."""
        paths = {f.path for f in readable}
        intact = [p for p, some in unknown.items() if paths.issuperset(f.path for f in some)]
        if not intact:
            return {}
        try:
            with self.engine.explained(view.table, readable):
                return self._hash(view, intact, readable)
        except DataUnavailable as error:  # a store that answers now and then
            return dict.fromkeys(intact, Version(rows=0, digest="", unavailable=error.message))

    def _hash(self, view: View, partitions: Sequence[str], files: Sequence[FileEntry]) -> dict[str, Version]:
        if view.table.sums:
            only = replace(view, listing=replace(view.listing, files=tuple(files))) if view.listing else view
            return {p: stored_version(self.engine, only.holding([p]), p) for p in partitions}
        with self.engine.connect() as connection:
            rows = self.engine.relation(connection, view, files)
            query = f"SELECT * FROM ({rows}) WHERE {sql_filter(view.table, partitions)}"
            return versions_of(view.table, connection.sql(query).to_arrow_reader())

    def partitions(self, view: View) -> list[str]:
        """Every partition that has rows. Files whose days are not known are read once and noted."""
        if view.listing is None:
            return []
        if view.listing.has_deletes:
            return self._distinct(view, list(view.files))
        listed: set[str] = set()
        resolved: list[FileEntry] = []
        for file in view.files:
            days = file.certain_partitions(view.table)
            resolved.append(file)
            if days is None:
                try:
                    days = tuple(self._distinct(view, [file]))
                except (DataCorrupt, DataUnavailable):
                    days = file.possible_partitions(view.table)  # `versions` tells what is wrong with them
                else:
                    resolved[-1] = replace(file, days=days if view.table.partition_kind == "day" else None)
            listed.update(days)
        if tuple(resolved) != view.files:
            self.index.put(view.table.name, FileList(view.listing.snapshot_id, tuple(resolved)))
        return sorted(listed)

    def _distinct(self, view: View, files: Sequence[FileEntry]) -> list[str]:
        columns = ", ".join(map(quoted, view.table.partition_columns))
        with self.engine.connect() as connection, self.engine.explained(view.table, files):
            rows = self.engine.relation(connection, view, files)
            if not columns:
                return (
                    [ALL]
                    if connection.sql(f"SELECT 1 FROM ({rows}) LIMIT 1").to_arrow_table().num_rows
                    else []
                )
            query = f"SELECT DISTINCT {columns} FROM ({rows}) ORDER BY {columns}"
            return [partition_key(values) for values in connection.sql(query).fetchall()]


def _key(view: View, files: Sequence[FileEntry]) -> str:
    """Row-level deletes change what a partition holds without changing its data files."""
    key = file_set_key(files)
    has_deletes = view.listing is not None and view.listing.has_deletes
    return f"{key}@{view.listing.snapshot_id}" if view.listing is not None and has_deletes else key
