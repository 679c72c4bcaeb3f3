"""What partitions hold now: their versions, and which there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from domain.shared.table import ABSENT, ALL, Version
from resources.lake.content_hash import versions_of
from resources.lake.desk import stored_version
from resources.lake.engine import READ_ERRORS, Engine, quoted
from resources.lake.error import DataCorrupt, DataUnavailable
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.layout import parse_partition, partition_key, sql_filter
from resources.lake.version_cache import VersionCache, fingerprint
from resources.lake.view import View

CORRUPT = Version(rows=0, digest="", corrupt=True)


def unavailable(error: DataUnavailable) -> Version:
    return Version(rows=0, digest="", unavailable=error.message)


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
            try:
                key = self._key(view, files, stamps)
            except DataUnavailable as error:
                found[partition] = unavailable(error)
                continue
            known = self.cache.get(view.table, partition, key)
            if known is not None:
                found[partition] = known
            else:
                unknown[partition] = (key, files)
        if unknown:
            found |= self._compute(view, unknown)
        return {p: found[p] for p in partitions}

    def read_versions(self, view: View, partitions: Sequence[str]) -> dict[str, Version]:
        """The same for who writes; raises Unreadable where it is not known what is there."""
        found = self.versions(view, partitions)
        for version in found.values():
            if version.unavailable:
                raise DataUnavailable(version.unavailable)
        return found

    def remember(self, view: View, versions: dict[str, Version]) -> None:
        """Note versions that a commit has just made."""
        stamps: dict[str, str] = {}
        entries = {}
        for partition, version in versions.items():
            files = view.may_hold(partition)
            with suppress(DataUnavailable):  # then it is computed when it can be read
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
        """One file in trouble costs its own partitions, and no others."""
        files = {f.path: f for _, some in unknown.values() for f in some}
        bad: dict[str, Version] = {}
        try:
            found = self._hash(view, list(unknown), list(files.values()))
        except READ_ERRORS:
            bad, found = self._apart(view, unknown, files)
        found = {p: bad.get(p) or found.get(p, ABSENT) for p in unknown}
        self.cache.put(view.table, {p: (unknown[p][0], v) for p, v in found.items()})
        return found

    def _apart(
        self, view: View, unknown: Mapping[str, tuple[str, list[FileEntry]]], files: Mapping[str, FileEntry]
    ) -> tuple[dict[str, Version], dict[str, Version]]:
        """The partitions whose files cannot be read, and the versions of the others."""
        corrupt, reasons = self.engine.judged(list(files.values()))
        bad: dict[str, Version] = {}
        for partition, (_, some) in unknown.items():
            # What cannot be had comes before what is damaged: nobody is to write over it.
            if reason := next((reasons[f.path] for f in some if f.path in reasons), ""):
                bad[partition] = Version(rows=0, digest="", unavailable=reason)
            elif any(f.path in corrupt for f in some):
                bad[partition] = CORRUPT
        intact = [p for p in unknown if p not in bad]
        if not intact:
            return bad, {}
        readable = [f for f in files.values() if f.path not in corrupt and f.path not in reasons]
        try:
            with self.engine.explained(view.table, readable):
                return bad, self._hash(view, intact, readable)
        except DataUnavailable as error:  # the store answers now and then
            return bad | dict.fromkeys(intact, unavailable(error)), {}

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
