"""Versions already computed, by the set of data files a partition's rows may be in.

Kept in memory and in one small file per table and year (or per table), so a look costs no read of data.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

import orjson

from domain.shared.table import Table, Version
from resources.lake.file_index import FileEntry, write_cache
from resources.lake.store import Store


def fingerprint(store: Store, files: Iterable[FileEntry], stamps: dict[str, str]) -> str:
    """What a partition's version depends on. `stamps` saves looking at one file twice in a look."""
    digest = blake2b(digest_size=12)
    for path in sorted(f.path for f in files):
        if path not in stamps:
            stamps[path] = store.stamp(path)
        digest.update(f"{path}\n{stamps[path]}\n".encode())
    return digest.hexdigest()


_Shard = dict[str, tuple[str, Version]]


class VersionCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[Path, tuple[int, _Shard]] = {}
        """As they were read or written last, with the moment of their file then."""
        self._guard = threading.Lock()

    def get(self, table: Table, partition: str, fingerprint: str) -> Version | None:
        with self._guard:
            path = self._path(table, partition)
            known = self._shard(path).get(partition)
            if known is None or known[0] != fingerprint:
                return None
            return known[1]

    def put(self, table: Table, found: Mapping[str, tuple[str, Version]]) -> None:
        """Remember versions by partition as (fingerprint, version), but nothing that could not be read: files
        get restored, and stores answer again."""
        with self._guard:
            touched: dict[Path, _Shard] = {}
            for partition, entry in found.items():
                if entry[1].readable:
                    touched.setdefault(self._path(table, partition), {})[partition] = entry
            for path, entries in touched.items():
                # Another process may have added to the file since; a lost race only costs a computation.
                self._write(path, {**self._shard(path), **entries})

    def _path(self, table: Table, partition: str) -> Path:
        shard = partition[:4] if table.partition_kind == "day" else "all"
        return self._folder / table.name / f"{shard}.json"

    def _shard(self, path: Path) -> _Shard:
        """As any process wrote it last: one that lives long would not hear of what another found out."""
        moment = _moment(path)
        if path not in self._shards or self._shards[path][0] != moment:
            self._shards[path] = moment, self._load(path)
        return self._shards[path][1]

    def _write(self, path: Path, shard: _Shard) -> None:
        write_cache(path, orjson.dumps({p: [f, v.rows, v.digest] for p, (f, v) in shard.items()}))
        self._shards[path] = _moment(path), shard

    def _load(self, path: Path) -> _Shard:
        try:
            rows = orjson.loads(path.read_bytes())
            return {p: (f, Version(rows=int(n), digest=str(d))) for p, (f, n, d) in rows.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}  # what is not understood is not known: it is computed anew


def _moment(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - called for every partition of every look
    except OSError:
        return 0
