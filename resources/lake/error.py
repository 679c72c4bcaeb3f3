"""What may go wrong in the lake, as types that know whether a retry helps and what a person can do."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from domain.shared.error import InfrastructureError, PermanentRunnerError, TransientResourceError
from domain.shared.verdict import UNAVAILABLE


class DataCorrupt(InfrastructureError):
    """Data files of a table do not decode, or are lost. Replacing the named partitions heals it."""

    reason_code = "corrupt_data"

    def __init__(self, table: str, partitions: Sequence[str], files: Sequence[str]) -> None:
        shown = ", ".join(partitions[:8]) + (
            f" and {len(partitions) - 8} more" if len(partitions) > 8 else ""
        )
        super().__init__(
            f"{table}: {len(files)} data file(s) holding {shown} are corrupt",
            remedy="replace these partitions, which drops the files; `perennial status` names the command",
        )
        self.table = table
        self.partitions = tuple(partitions)
        self.files = tuple(files)


class DataUnavailable(TransientResourceError):
    """The disk or the object store does not return the bytes of a file, whose content is not known then."""

    reason_code = UNAVAILABLE

    def __init__(self, what: str, error: Exception | None = None) -> None:
        """`what` is the file, or without an error the whole message."""
        message = what
        if error is not None:
            # The last line of a stack is what happened; DuckDB may add where in the statement.
            lines = str(error).split("\nLINE ")[0].strip().splitlines() or [type(error).__name__]
            message = f"{what} cannot be read now: {lines[-1]}"
        super().__init__(
            message,
            remedy="nothing, unless it lasts: then check the disk or the store, and this user's rights "
            "there; remove a file that is lost for good, and its partitions are made again",
        )


class LakeBusy(TransientResourceError):
    """Another writer holds the table for longer than we wait."""

    reason_code = "lake_busy"


class CommitConflict(TransientResourceError):
    """The table moved on between our read and our commit; the change is to be computed anew."""

    reason_code = "lake_conflict"


class SnapshotGone(InfrastructureError):
    """The asked moment or snapshot is no longer kept."""

    reason_code = "snapshot_gone"


class ForeignWarehouse(PermanentRunnerError):
    """The warehouse holds files of another catalogue, which our maintenance would delete as orphans."""

    reason_code = "foreign_warehouse"


class MovedWarehouse(PermanentRunnerError):
    """The catalogue's tables are in another warehouse than the one that was set."""

    reason_code = "moved_warehouse"


class LakeUnwritable(TransientResourceError):
    """The disk refuses. Once a person has acted everything goes on by itself."""

    reason_code = "lake_unwritable"
    retry_in_run = False


def metadata_corrupt(table: str, what: str) -> InfrastructureError:
    return InfrastructureError(
        f"{table}: {what} does not decode",
        reason_code="lake_metadata_corrupt",
        remedy="restore the file from a backup, or drop the table from the catalog and fill it anew",
    )


def metadata_missing(location: str) -> InfrastructureError:
    return InfrastructureError(
        f"the lake's metadata file {location} is missing",
        reason_code="lake_metadata_missing",
        remedy="check that catalog and warehouse are of one moment: an older catalog names files that "
        "maintenance has deleted since; put the newest catalog in place, or restore both from one backup",
    )


@contextmanager
def storage_errors(table: str) -> Iterator[None]:
    """Turn errors of the disk while writing into errors with a remedy."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise _unwritable(table, error, full=full) from error
        raise


def write_error(table: str, path: str, error: Exception) -> LakeUnwritable | None:
    """What an error of DuckDB means that comes of writing a file at `path`; None of any other error."""
    full = "No space left" in str(error) or "Disk quota exceeded" in str(error)
    if full or path.removeprefix("file://") in str(error):
        return _unwritable(table, error, full=full)
    return None


def _unwritable(table: str, error: Exception, *, full: bool) -> LakeUnwritable:
    if full:
        return LakeUnwritable(
            f"{table}: no space left for the lake: {error}",
            reason_code="disk_full",
            remedy="free disk space or run the maintenance job",
        )
    return LakeUnwritable(
        f"{table}: the lake cannot be written: {error}",
        remedy="make the lake's folder writable for this user",
    )
