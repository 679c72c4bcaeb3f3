"""Files in a folder or in an object store: read, create, list, delete, register with DuckDB.

Locations are absolute URIs, as Iceberg's metadata holds them. DuckDB has no object store client of its own
here, so for `s3://` it uses pyarrow's. What files mean to a table belongs in resources/lake.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from domain.shared.error import TransientResourceError


@dataclass(frozen=True)
class Stored:
    uri: str
    size: int
    modified: datetime


class Store:
    """Files in folders of this machine; and what every store can do."""

    def read(self, uri: str) -> bytes:
        """The whole file; FileNotFoundError if it is not there."""
        with open(_local(uri), "rb") as file:  # noqa: PTH123 - a path object costs more than the read
            return file.read()

    def create(self, uri: str, content: bytes) -> None:
        """Create a file, whole or not at all; one that is there already stays as it is.

        Not exclusive, as pyarrow's filesystems have no conditional writes (S3's If-None-Match): of two that
        create at the same moment the later one's content stays.
        """
        path = Path(_local(uri))
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            with scratch.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else a power cut could leave the name with nothing behind it
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)

    def has_size(self, uri: str, size: int) -> bool:
        """Whether a file is there with this size, as far as can be known without a request."""
        try:
            return os.stat(_local(uri)).st_size == size  # noqa: PTH116 - called for every file of every observation
        except OSError:
            return False

    def sql_path(self, uri: str) -> str:
        """The path by which DuckDB knows the file."""
        return _local(uri)

    def register_with(self, connection: Any) -> None:
        """Make the files known on a DuckDB connection, which reads local files itself."""

    def make_folder(self, uri: str) -> None:
        """Create the folder of a file, where there are folders."""
        Path(_local(uri)).parent.mkdir(parents=True, exist_ok=True)

    def list(self, prefix: str) -> Iterator[Stored]:
        """Every file below a prefix."""
        for folder, _, names in os.walk(_local(prefix)):
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118
                with suppress(OSError):  # deleted since it was listed, or of unknown age
                    status = os.stat(path)  # noqa: PTH116
                    modified = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield Stored(f"file://{path}", status.st_size, modified)

    def delete(self, uri: str) -> None:
        """Delete a file; one that is gone already is fine."""
        with suppress(FileNotFoundError):
            os.remove(_local(uri))  # noqa: PTH107


class ObjectStore(Store):
    """An object store through pyarrow.fs. Credentials and endpoint come from the client's own settings."""

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
        with _answering(uri, "read"), self._filesystem.open_input_stream(self._key(uri)) as stream:
            content: bytes = stream.read()
            return content

    def create(self, uri: str, content: bytes) -> None:
        from pyarrow.fs import FileType

        key = self._key(uri)
        with _answering(uri, "written"):
            if self._filesystem.get_file_info(key).type == FileType.File:
                return
            with self._filesystem.open_output_stream(key) as stream:
                stream.write(content)

    def has_size(self, uri: str, size: int) -> bool:  # noqa: ARG002
        """Objects never change under one name, and asking costs a request."""
        return True

    def sql_path(self, uri: str) -> str:
        return f"{self._scheme}://{self._key(uri)}"

    def register_with(self, connection: Any) -> None:
        from resources.objects.arrow_filesystem import ArrowFilesystem

        connection.register_filesystem(ArrowFilesystem(self._filesystem, self._scheme))

    def make_folder(self, uri: str) -> None:
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


def store_for(location: str) -> Store:
    return ObjectStore() if location.startswith("s3://") else Store()


@contextmanager
def _answering(uri: str, verb: str) -> Iterator[None]:
    """An object store that does not answer is a passing failure; that a file is not there is an answer."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TransientResourceError(f"{uri} cannot be {verb} in the object store: {error}") from error


def _local(uri: str) -> str:
    return uri.removeprefix("file://")
