"""An Arrow filesystem as DuckDB reads from it: by many threads at once, and telling what it met.

Imported where used: fsspec costs time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper


class LentFilesystem(ArrowFSWrapper):  # type: ignore[misc]
    cachable = False

    def __init__(self, filesystem: Any, scheme: str) -> None:
        self._scheme = scheme
        self.trouble: list[Exception] = []
        """What went wrong besides that a file is not there: it says nothing about the bytes of a file."""
        super().__init__(filesystem)

    @property
    def protocol(self) -> str:
        """fsspec's own answers to the name of the filesystem it wraps, which need not be the scheme."""
        return self._scheme

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.split("://", 1)[-1]

    def info(self, path: str, **kwargs: Any) -> Any:
        with self.noted():
            return super().info(path, **kwargs)

    def modified(self, path: str) -> Any:
        with self.noted():
            return super().modified(path)

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        with self.noted():
            opened = super()._open(path, mode, **kwargs)
            return LentFile(self, opened) if mode == "rb" else opened

    @contextmanager
    def noted(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:
            self.trouble.append(error)
            raise


class LentFile(io.RawIOBase):
    """A file of which every thread has its own place.

    DuckDB reads one file in many threads, and from Python by `seek` and `read`: with a place they share, one
    reads where another has just gone, and what it then decodes is an error at best.
    """

    def __init__(self, filesystem: LentFilesystem, opened: Any) -> None:
        self._filesystem = filesystem
        self._opened = opened  # its end would close the stream
        self._stream = opened.stream
        self._size: int = opened.size
        self._places: dict[int, int] = {}

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        self._places[get_ident()] = start + offset
        return start + offset

    def tell(self) -> int:
        return self._places.get(get_ident(), 0)

    def read(self, size: int = -1) -> bytes:
        """As many bytes as there are. A place beyond the end, where a file that rotted leads, has none."""
        place = self.tell()
        left = max(self._size - place, 0)
        wanted = left if size < 0 else min(size, left)
        content = b""
        if wanted:
            with self._filesystem.noted():
                content = self._stream.read_at(wanted, place)
                if len(content) < wanted:
                    raise OSError(f"of {wanted} bytes at {place} only {len(content)} came")
        self._places[get_ident()] = place + len(content)
        return content

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._opened.close()
        super().close()
