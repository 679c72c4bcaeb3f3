"""Versions already computed, by the set of data files a partition's rows may be in.

Kept in memory and in one small file per table and year (or per table), so that observing reads no data.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

import orjson

from domain.shared.table import Table, Version
from resources.lake.file_index import FileEntry, write_cache

_Shard = dict[str, tuple[str, Version]]
"""By partition, (key of its file set, version)."""


def file_set_key(files: Iterable[FileEntry]) -> str:
    """What stands for a set of data files: files never change under one name."""
    return blake2b("\n".join(sorted(f.path for f in files)).encode(), digest_size=12).hexdigest()


class VersionCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[Path, tuple[int, _Shard]] = {}
        """As they were read or written last, with the modification time of their file then."""
        self._guard = threading.Lock()

    def get(self, table: Table, keys: Mapping[str, str]) -> dict[str, Version]:
        """The versions that are known of partitions with these keys."""
        with self._guard:
            shards = {path: self._shard(path) for path in {self._path(table, p) for p in keys}}
        known = {p: shards[self._path(table, p)].get(p) for p in keys}
        return {p: entry[1] for p, entry in known.items() if entry is not None and entry[0] == keys[p]}

    def put(self, table: Table, found: Mapping[str, tuple[str, Version]]) -> None:
        """Keep versions by partition as (key, version), except of what could not be read: files are restored,
        and stores answer again."""
        with self._guard:
            touched: dict[Path, _Shard] = {}
            for partition, entry in found.items():
                if entry[1].readable:
                    touched.setdefault(self._path(table, partition), {})[partition] = entry
            for path, entries in touched.items():
                # Another process may have added to the file since; a lost race only costs a computation.
                self._write(path, {**self._shard(path), **entries})

    def forget(self, table: Table, partitions: Iterable[str]) -> None:
        """Compute the versions of these partitions anew, in every process."""
        with self._guard:
            gone = set(partitions)
            for path in {self._path(table, partition) for partition in gone}:
                self._write(path, {p: entry for p, entry in self._shard(path).items() if p not in gone})

    def _path(self, table: Table, partition: str) -> Path:
        shard = partition[:4] if table.partition_kind == "day" else "all"
        return self._folder / table.name / f"{shard}.json"

    def _shard(self, path: Path) -> _Shard:
        """As any process wrote it last."""
        modified = _modified(path)
        if path not in self._shards or self._shards[path][0] != modified:
            self._shards[path] = modified, self._load(path)
        return self._shards[path][1]

    def _write(self, path: Path, shard: _Shard) -> None:
        write_cache(path, orjson.dumps({p: [k, v.rows, v.digest] for p, (k, v) in shard.items()}))
        self._shards[path] = _modified(path), shard

    def _load(self, path: Path) -> _Shard:
        try:
            rows = orjson.loads(path.read_bytes())
            return {p: (k, Version(rows=int(n), digest=str(d))) for p, (k, n, d) in rows.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}  # a cache that cannot be read is computed anew


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
