"""A pyarrow filesystem as DuckDB reads from it: one file by many threads at once.

Imported where used: fsspec costs time.
"""

from __future__ import annotations

import io
from threading import get_ident
from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper


class ArrowFilesystem(ArrowFSWrapper):  # type: ignore[misc]
    cachable = False

    def __init__(self, filesystem: Any, scheme: str) -> None:
        self._scheme = scheme
        super().__init__(filesystem)

    @property
    def protocol(self) -> str:
        """fsspec's own answers to the name of the filesystem it wraps, which need not be the scheme."""
        return self._scheme

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.split("://", 1)[-1]

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        opened = super()._open(path, mode, **kwargs)
        return ThreadSafeFile(opened) if mode == "rb" else opened


class ThreadSafeFile(io.RawIOBase):
    """A file in which every thread has its own position.

    DuckDB reads one file in many threads, and from Python by `seek` and `read`: with a shared position, one
    thread reads where another has just gone, and what it then decodes is an error at best.
    """

    def __init__(self, opened: Any) -> None:
        self._opened = opened  # garbage collection of it would close the stream
        self._stream = opened.stream
        self._size: int = opened.size
        self._positions: dict[int, int] = {}

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        self._positions[get_ident()] = start + offset
        return start + offset

    def tell(self) -> int:
        return self._positions.get(get_ident(), 0)

    def read(self, size: int = -1) -> bytes:
        """As many bytes as there are; none beyond the end, where the footer of a corrupt file may lead."""
        position = self.tell()
        left = max(self._size - position, 0)
        wanted = left if size < 0 else min(size, left)
        content = self._stream.read_at(wanted, position) if wanted else b""
        if len(content) < wanted:
            raise OSError(f"only {len(content)} of {wanted} bytes at {position} were read")
        self._positions[get_ident()] = position + len(content)
        return bytes(content)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._opened.close()
        super().close()
