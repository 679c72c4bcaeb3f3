"""What partitions hold now: their versions, and which there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from domain.shared.table import ABSENT, ALL, Version
from resources.lake.content_hash import versions_of
from resources.lake.engine import Engine, quoted
from resources.lake.error import DamagedData
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.layout import parse_partition, partition_key, sql_filter
from resources.lake.version_cache import VersionCache, fingerprint
from resources.lake.view import View

DAMAGED = Version(rows=0, digest="", damaged=True)


@dataclass(frozen=True)
class VersionReader:
    engine: Engine
    cache: VersionCache
    index: FileIndex

    def versions(self, view: View, partitions: Sequence[str]) -> dict[str, Version]:
        found: dict[str, Version] = {}
        unknown: dict[str, tuple[str, list[FileEntry]]] = {}
        stamps: dict[str, str] = {}
        for partition in partitions:
            parse_partition(view.table, partition)
            files = view.may_hold(partition)
            if not files:
                found[partition] = ABSENT
                continue
            key = self._key(view, files, stamps)
            known = self.cache.get(view.table, partition, key)
            if known is not None:
                found[partition] = known
            else:
                unknown[partition] = (key, files)
        if unknown:
            found |= self._compute(view, unknown)
        return {p: found[p] for p in partitions}

    def read_again(self, view: View, partitions: Sequence[str]) -> list[str]:
        """Those that turn out to hold something else than is known of them; from now on that is known."""
        known: dict[str, Version] = {}
        wanted: dict[str, tuple[str, list[FileEntry]]] = {}
        stamps: dict[str, str] = {}
        for partition in partitions:
            if files := view.may_hold(partition):
                key = self._key(view, files, stamps)
                if (version := self.cache.get(view.table, partition, key)) is not None:
                    known[partition], wanted[partition] = version, (key, files)
        if not wanted:
            return []
        found = self._compute(view, wanted)
        self.cache.forget(view.table, [p for p in found if found[p].damaged])
        return [p for p in found if found[p] != known[p]]

    def remember(self, view: View, versions: dict[str, Version]) -> None:
        """Note versions that a commit has just made."""
        stamps: dict[str, str] = {}
        entries = {}
        for partition, version in versions.items():
            files = view.may_hold(partition)
            if files:
                entries[partition] = (self._key(view, files, stamps), version)
        self.cache.put(view.table, entries)

    def _key(self, view: View, files: list[FileEntry], stamps: dict[str, str]) -> str:
        key = fingerprint(self.engine.store, files, stamps)
        # Row-level deletes change what a partition holds without changing its data files.
        return (
            f"{key}@{view.listing.snapshot_id}"
            if view.listing is not None and view.listing.has_deletes
            else key
        )

    def _compute(self, view: View, unknown: dict[str, tuple[str, list[FileEntry]]]) -> dict[str, Version]:
        files = {f.path: f for _, some in unknown.values() for f in some}
        try:
            computed = self._hash(view, list(unknown), list(files.values()))
            lost: set[str] = set()
        except DamagedData as error:
            bad = set(error.files)
            lost = {p for p, (_, some) in unknown.items() if any(f.path in bad for f in some)}
            intact = [p for p in unknown if p not in lost]
            computed = (
                self._hash(view, intact, [f for f in files.values() if f.path not in bad]) if intact else {}
            )
        found = {p: DAMAGED if p in lost else computed.get(p, ABSENT) for p in unknown}
        self.cache.put(view.table, {p: (unknown[p][0], v) for p, v in found.items()})
        return found

    def _hash(self, view: View, partitions: Sequence[str], files: Sequence[FileEntry]) -> dict[str, Version]:
        with self.engine.connect() as connection, self.engine.explained(view.table, files):
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
                except DamagedData:
                    days = file.possible_partitions(view.table)  # `versions` tells that they are damaged
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
