"""The files of the lake, local or in an object store: read, create, look, list, delete.

Paths are the absolute URIs that Iceberg's metadata holds. DuckDB has no object store client of its own
here, so for `s3://` it is lent pyarrow's.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from domain.shared.error import TransientResourceError
from resources.lake.error import DataUnavailable

Condition = Literal["there", "missing"]


@dataclass(frozen=True)
class Stored:
    uri: str
    size: int
    modified: datetime


class Store(Protocol):
    def read(self, uri: str) -> bytes:
        """The whole file; FileNotFoundError if it is not there."""

    def create(self, uri: str, content: bytes) -> None:
        """Make a file, whole or not at all; one that is there already stays as it is."""

    def stamp(self, uri: str) -> str:
        """Something cheap that changes when the bytes may have changed; "missing" if there is no file."""

    def sql_path(self, uri: str) -> str:
        """The path as DuckDB should be given it."""

    def lend(self, connection: Any) -> None:
        """Make the files readable on a DuckDB connection."""

    def for_arrow(self, uris: Sequence[str]) -> tuple[Any, list[str]]:
        """A filesystem of pyarrow's, and by which paths it knows the files."""

    def make_room(self, uri: str) -> None:
        """See to it that a file can be written there."""

    def list(self, prefix: str) -> Iterator[Stored]:
        """Every file below a prefix."""

    def delete(self, uri: str) -> None:
        """Delete a file; one that is gone already is fine."""


class LocalStore:
    def read(self, uri: str) -> bytes:
        with open(_local(uri), "rb") as file:  # noqa: PTH123 - a path object costs more than the read
            return file.read()

    def create(self, uri: str, content: bytes) -> None:
        path = Path(_local(uri))
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            with scratch.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else a power cut could leave the name with nothing behind it
            _link(scratch, path, content)
        finally:
            scratch.unlink(missing_ok=True)

    def stamp(self, uri: str) -> str:
        try:
            status = os.stat(_local(uri))  # noqa: PTH116 - called for every file of every look
        except FileNotFoundError:
            return "missing"
        except OSError as error:
            raise DataUnavailable(uri, error) from error
        return f"{status.st_size}:{status.st_mtime_ns}"

    def sql_path(self, uri: str) -> str:
        return _local(uri)

    def lend(self, connection: Any) -> None:
        pass  # DuckDB reads local files itself

    def for_arrow(self, uris: Sequence[str]) -> tuple[Any, list[str]]:
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem(), [_local(uri) for uri in uris]

    def make_room(self, uri: str) -> None:
        Path(_local(uri)).parent.mkdir(parents=True, exist_ok=True)

    def list(self, prefix: str) -> Iterator[Stored]:
        for folder, _, names in os.walk(_local(prefix)):
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118
                with suppress(OSError):  # deleted since it was listed; or nobody can tell how old it is
                    status = os.stat(path)  # noqa: PTH116
                    yield Stored(
                        f"file://{path}", status.st_size, datetime.fromtimestamp(status.st_mtime, UTC)
                    )

    def delete(self, uri: str) -> None:
        with suppress(FileNotFoundError):
            os.remove(_local(uri))  # noqa: PTH107


class ObjectStore:
    """An object store through pyarrow.fs. Credentials and endpoint come from the client's own settings.

    Objects never change under one name, so a stamp costs no request: a vanished or unreadable object is
    met when its rows are read.
    """

    def __init__(self, filesystem: Any = None, scheme: str = "s3") -> None:
        self._given = filesystem
        self._scheme = scheme

    @cached_property
    def _filesystem(self) -> Any:
        if self._given is not None:
            return self._given
        from pyarrow.fs import S3FileSystem

        return S3FileSystem()

    def _key(self, uri: str) -> str:
        return uri.removeprefix(f"{self._scheme}://").removeprefix("s3a://")

    def read(self, uri: str) -> bytes:
        try:
            with self._filesystem.open_input_stream(self._key(uri)) as stream:
                content: bytes = stream.read()
                return content
        except FileNotFoundError:
            raise
        except OSError as error:
            raise TransientResourceError(f"the object store cannot be read: {error}") from error

    def create(self, uri: str, content: bytes) -> None:
        """Not exclusive: pyarrow's filesystems have no conditional writes (S3's If-None-Match), DuckDB has no
        object store client here. Of two that create at the same moment the later one's content stays, so
        whoever has to know reads it back."""
        if self.exists(uri):
            return
        try:
            with self._filesystem.open_output_stream(self._key(uri)) as stream:
                stream.write(content)
        except OSError as error:
            raise TransientResourceError(f"the object store cannot be written: {error}") from error

    def stamp(self, uri: str) -> str:  # noqa: ARG002
        return "object"

    def exists(self, uri: str) -> bool:
        from pyarrow.fs import FileType

        try:
            return bool(self._filesystem.get_file_info(self._key(uri)).type == FileType.File)
        except OSError as error:
            raise DataUnavailable(uri, error) from error

    def sql_path(self, uri: str) -> str:
        return f"{self._scheme}://{self._key(uri)}"

    def lend(self, connection: Any) -> None:
        from resources.lake.lent import LentFilesystem

        connection.register_filesystem(LentFilesystem(self._filesystem, self._scheme))

    def for_arrow(self, uris: Sequence[str]) -> tuple[Any, list[str]]:
        return self._filesystem, [self._key(uri) for uri in uris]

    def make_room(self, uri: str) -> None:
        pass

    def list(self, prefix: str) -> Iterator[Stored]:
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self._key(prefix), recursive=True, allow_not_found=True)
        for info in self._filesystem.get_file_info(selector):
            if info.type == FileType.File:
                yield Stored(f"{self._scheme}://{info.path}", info.size, info.mtime.astimezone(UTC))

    def delete(self, uri: str) -> None:
        with suppress(FileNotFoundError):
            self._filesystem.delete_file(self._key(uri))


def store_for(warehouse: str) -> Store:
    return ObjectStore() if warehouse.startswith("s3://") else LocalStore()


def readable(store: Store, uri: str) -> Condition:
    """Whether a file is there. Any trouble but absence is raised: it says nothing about the data."""
    if isinstance(store, ObjectStore):
        return "there" if store.exists(uri) else "missing"
    try:
        with open(_local(uri), "rb"):  # noqa: PTH123
            return "there"
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        raise DataUnavailable(uri, error) from error


def _link(scratch: Path, path: Path, content: bytes) -> None:
    """Give a finished file its name, unless the name is taken: what a rename could not promise."""
    try:
        path.hardlink_to(scratch)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links: still exclusive, only not whole after a crash
        with suppress(FileExistsError), path.open("xb") as file:
            file.write(content)


def _local(uri: str) -> str:
    return uri.removeprefix("file://")
