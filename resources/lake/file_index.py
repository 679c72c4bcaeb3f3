"""Which data files a snapshot consists of, and which partitions each may hold.

A snapshot never changes, so its file list is written once into a small cache file and read from there:
readers need no pyiceberg. On a miss the list is read from the manifests through pyiceberg.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path

import orjson

from domain.shared.table import ALL, Table
from resources.lake.layout import group_of

_FORMAT = 1
_KEPT_IN_MEMORY = 64
_KEPT_ON_DISK = 48

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileEntry:
    """One data file. `days` are exactly its partitions, where known; `low` and `high` bound them."""

    path: str
    size: int
    rows: int
    group: str | None = None
    low: str | None = None
    high: str | None = None
    days: tuple[str, ...] | None = None

    def may_hold(self, table: Table, partition: str) -> bool:
        if self.group is not None and self.group != group_of(table, partition):
            return False
        if self.days is not None:
            return partition in self.days
        return self.low is None or self.high is None or self.low <= partition <= self.high

    def certain_partitions(self, table: Table) -> tuple[str, ...] | None:
        """The partitions this file holds, if that is known without reading it."""
        if table.partition_kind == "none":
            return (ALL,)
        if self.days is not None:
            return self.days
        if table.partition_kind != "day":
            return None if self.group is None else (self.group,)
        return (self.low,) if self.low is not None and self.low == self.high else None

    def possible_partitions(self, table: Table) -> tuple[str, ...]:
        """Every partition this file may hold, by what is known of it."""
        if (certain := self.certain_partitions(table)) is not None:
            return certain
        if self.low is None or self.high is None:
            return ()
        first, last = date.fromisoformat(self.low), date.fromisoformat(self.high)
        return tuple((first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1))


@dataclass(frozen=True)
class FileList:
    snapshot_id: int
    files: tuple[FileEntry, ...]
    has_deletes: bool = False
    """Row-level deletes by another engine: such a snapshot is read through pyiceberg."""

    def holding(self, table: Table, partitions: Collection[str]) -> list[FileEntry]:
        """The files that may have rows of some partitions, each once; found by layout group, so that ten
        years take as long as one month."""
        found: dict[str, FileEntry] = {}
        for partition in partitions:
            for group in dict.fromkeys((group_of(table, partition), None)):
                near = self._by_group.get(group, ())
                found |= {f.path: f for f in near if f.may_hold(table, partition)}
        return list(found.values())

    @cached_property
    def _by_group(self) -> dict[str | None, list[FileEntry]]:
        found: dict[str | None, list[FileEntry]] = {}
        for file in self.files:
            found.setdefault(file.group, []).append(file)
        return found


class FileIndex:
    """File lists by snapshot: memory, then disk, then `build` from table, metadata location and snapshot."""

    def __init__(self, folder: Path, build: Callable[[Table, str, int], FileList]) -> None:
        self._folder = folder
        self._build = build
        self._memory: dict[tuple[str, int], FileList] = {}

    def get(self, table: Table, metadata_location: str, snapshot_id: int) -> FileList:
        if (known := self._memory.get((table.name, snapshot_id))) is not None:
            return known
        files = self._load(table, snapshot_id)
        if files is None:
            files = self._build(table, metadata_location, snapshot_id)
            self._save(table, files)
        return self._remember(table, files)

    def put(self, table: Table, files: FileList) -> None:
        self._save(table, files)
        self._remember(table, files)

    def _remember(self, table: Table, files: FileList) -> FileList:
        if len(self._memory) >= _KEPT_IN_MEMORY:
            self._memory.clear()
        self._memory[(table.name, files.snapshot_id)] = files
        return files

    def _path(self, table: Table, snapshot_id: int) -> Path:
        return self._folder / table.name / f"{snapshot_id}.json"

    def _load(self, table: Table, snapshot_id: int) -> FileList | None:
        try:
            raw = orjson.loads(self._path(table, snapshot_id).read_bytes())
            if raw["format"] != _FORMAT:
                return None
            rows = ([*row, days and tuple(days)] for *row, days in raw["files"])
            return FileList(snapshot_id, tuple(FileEntry(*row) for row in rows), raw["has_deletes"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # a cache that cannot be read is built anew

    def _save(self, table: Table, files: FileList) -> None:
        rows = [astuple(f) for f in files.files]
        content = {"format": _FORMAT, "has_deletes": files.has_deletes, "files": rows}
        path = self._path(table, files.snapshot_id)
        if write_cache(path, orjson.dumps(content)):
            _keep_newest(path.parent)


def write_cache(path: Path, content: bytes) -> bool:
    """Write a cache file in one step. A disk that refuses costs speed, never an answer."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_bytes(content)
        scratch.replace(path)
    except OSError as error:
        log.warning("the lake's cache %s cannot be written: %s", path, error)
        return False
    return True


def _keep_newest(folder: Path) -> None:
    aged = []
    for path in folder.glob("*.json"):
        with suppress(FileNotFoundError):  # another process deleted it
            aged.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(aged)[:-_KEPT_ON_DISK]:
        path.unlink(missing_ok=True)
