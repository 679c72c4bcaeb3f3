"""Whether a data file is corrupt or unavailable, and what an error while reading means.

The one place that decides it, in two steps. Bytes that cannot be read now are *unavailable*: their content is
not known, and nothing is written over them. Bytes that were read and do not decode, and files that are not
there, are *corrupt*: their partitions are made again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import closing

import duckdb
import pyarrow as pa

from domain.shared.error import InfrastructureError, InvalidInput, TransientResourceError
from domain.shared.table import Version
from resources.lake.error import DataUnavailable
from resources.lake.file_index import FileEntry
from resources.objects.store import Store

READ_ERRORS = (duckdb.Error, pa.ArrowException, OSError, RuntimeError, UnicodeError)
"""What reading data files may raise, by DuckDB or pyarrow. The last two come of corrupt column names."""

_NEVER_OF_A_FILE = (
    duckdb.ParserException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.PermissionException,
    duckdb.OutOfMemoryException,
)
_OF_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
"""Raised for values that the statement cannot use; some for what a file holds, and then they name it."""
_WORDS_OF_A_FILE = ("parquet", "incorrect stats size", "invalid unicode")
"""Parts of such messages: the name of each data file has the first, and column names may be corrupt."""
_NO_SUCH_PATH = "No files found that match the pattern"

CORRUPT = Version(rows=0, digest="", corrupt=True)


def judge(store: Store, file: FileEntry) -> Version | None:
    """The version that stands for a file's fault, or None if its bytes decode to the rows it should have."""
    try:
        content = store.read(file.path)
    except FileNotFoundError:
        return CORRUPT
    except (OSError, TransientResourceError) as error:
        return Version(rows=0, digest="", unavailable=DataUnavailable(file.path, error).message)
    return None if _decodes(content, file.rows) else CORRUPT


def faults_of(store: Store, files: Iterable[FileEntry]) -> dict[str, Version]:
    """The faults of some files by path. Each file is read whole."""
    return {f.path: fault for f in files if (fault := judge(store, f)) is not None}


def _decodes(content: bytes, expected: int) -> bool:
    """Whether DuckDB can read every value, from memory: no error can then come from a disk or a store."""
    from fsspec.implementations.memory import MemoryFileSystem

    memory, path = MemoryFileSystem(), f"/{uuid.uuid4()}"
    memory.pipe_file(path, content)
    rows = 0
    try:
        # One thread: an open file of this filesystem has one position.
        with closing(duckdb.connect(":memory:", config={"threads": 1})) as connection:
            connection.register_filesystem(memory)
            for batch in connection.sql(f"SELECT * FROM read_parquet('memory://{path}')").to_arrow_reader():
                rows += batch.num_rows
    except READ_ERRORS as error:
        if is_out_of_memory(error):
            raise query_error(error) from error
        return False
    finally:
        memory.rm_file(path)
    return rows == expected


def query_error(error: Exception) -> Exception:
    """What an error of DuckDB means when no data file is at fault."""
    first = str(error).strip()
    if is_out_of_memory(error):
        return InfrastructureError(
            f"the query needs more memory than the lake may use: {first.splitlines()[0]}",
            reason_code="out_of_memory",
            remedy="select fewer rows or columns, or raise the lake's memory limit",
        )
    if is_storage_error(error) and _NO_SUCH_PATH not in first:
        return DataUnavailable("a file of the lake", error)
    return InvalidInput(f"the query cannot be run: {first}", reason_code="invalid_sql")


def is_of_statement(error: Exception) -> bool:
    """Whether it is raised whatever the files hold."""
    if isinstance(error, _OF_VALUES):
        return not any(word in str(error).lower() for word in _WORDS_OF_A_FILE)
    return isinstance(error, _NEVER_OF_A_FILE)


def is_out_of_memory(error: Exception) -> bool:
    """Arrow's readers make an OSError of a DuckDB error after the first rows, and keep its text."""
    return isinstance(error, duckdb.OutOfMemoryException) or (
        isinstance(error, OSError) and "Out of Memory Error" in str(error)
    )


def is_storage_error(error: Exception) -> bool:
    """Whether the disk or the store failed, and not the statement. DuckDB has no type of its own for errors
    that come from Python's side."""
    return (
        type(error) is duckdb.Error
        or isinstance(error, duckdb.IOException)
        or (isinstance(error, OSError) and not isinstance(error, FileNotFoundError))
    )
