"""Versions already computed, by the set of data files a partition's rows may be in.

Kept in one small file per table and year (or per table), so that observing reads no data.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

import orjson

from domain.shared.table import Table, Version
from resources.lake.file_index import FileEntry, write_cache

_Shard = dict[str, tuple[str, int, str]]
"""By partition, (key of its file set, rows, digest)."""


def file_set_key(files: Iterable[FileEntry]) -> str:
    """What stands for a set of data files: files never change under one name."""
    return blake2b("\n".join(sorted(f.path for f in files)).encode(), digest_size=12).hexdigest()


class VersionCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()

    def get(self, table: Table, keys: Mapping[str, str]) -> dict[str, Version]:
        """The versions that are known of partitions with these keys."""
        folder, names = self._folder / table.name, {p: _shard(table, p) for p in keys}
        shards = {name: _load(folder / name) for name in set(names.values())}
        known = {p: shards[name].get(p) for p, name in names.items()}
        return {p: Version(e[1], e[2]) for p, e in known.items() if e is not None and e[0] == keys[p]}

    def put(self, table: Table, found: Mapping[str, tuple[str, Version]]) -> None:
        """Keep versions by partition as (key, version), except of what could not be read: files are restored,
        and stores answer again."""
        touched: dict[Path, _Shard] = {}
        for partition, (key, version) in found.items():
            if version.readable:
                shard = touched.setdefault(self._path(table, partition), {})
                shard[partition] = (key, version.rows, version.digest)
        with self._guard:
            for path, entries in touched.items():
                # Another process may add to the file meanwhile; a lost race only costs a computation.
                write_cache(path, orjson.dumps(_load(path) | entries))

    def forget(self, table: Table, partitions: Iterable[str]) -> None:
        """Compute the versions of these partitions anew, in every process."""
        gone = set(partitions)
        with self._guard:
            for path in {self._path(table, partition) for partition in gone}:
                write_cache(path, orjson.dumps({p: e for p, e in _load(path).items() if p not in gone}))

    def _path(self, table: Table, partition: str) -> Path:
        return self._folder / table.name / _shard(table, partition)


def _shard(table: Table, partition: str) -> str:
    """The name of the file that holds a partition."""
    return f"{partition[:4]}.json" if table.partition_kind == "day" else "all.json"


def _load(path: Path) -> _Shard:
    try:
        shard: _Shard = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}  # a cache that cannot be read is computed anew
    return shard
