"""What can go wrong in the lake beyond bad input, as types of the shared error tree."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from domain.shared.error import InfrastructureError, PermanentRunnerError, TransientResourceError
from domain.shared.state import UNAVAILABLE


class DataCorrupt(InfrastructureError):
    """Data files of a table cannot be read. Replacing the named partitions heals it."""

    reason_code = "damaged_data"

    def __init__(self, table: str, partitions: Sequence[str], files: Sequence[str]) -> None:
        shown = ", ".join(partitions[:8]) + (
            f" and {len(partitions) - 8} more" if len(partitions) > 8 else ""
        )
        super().__init__(
            f"{table}: {len(files)} data file(s) holding {shown} cannot be read",
            remedy="`perennial status` says what heals it, of old days of the market once "
            "`perennial market look-back` has found them: a replaced partition drops its damaged files",
        )
        self.table = table
        self.partitions = tuple(partitions)
        self.files = tuple(files)


class DataUnavailable(TransientResourceError):
    """The disk or the object store does not give the bytes of a file. That says nothing about its content:
    what was not fetched is never called damaged."""

    reason_code = UNAVAILABLE

    def __init__(self, what: str, error: Exception | None = None) -> None:
        """`what` is the whole message if there is no error: of a partition that was found to be so."""
        message = what
        if error is not None:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            message = f"{what} cannot be read now: {lines[-1]}"  # a Python stack's last line is what happened
        super().__init__(
            message,
            remedy="nothing, unless it lasts: then look at the disk or the object store, and at this user's "
            "rights there; a file that is lost for good is to be removed, and is filled again then",
        )


RESTORE = "restore the file from a backup, or drop the table from the catalog and fill it anew"
ONE_MOMENT = (
    "see that catalog and warehouse are of one moment: an older catalog names files that upkeep has deleted "
    "since; put the newest catalog in place, or restore both from one backup"
)


def metadata_corrupt(table: str, what: str) -> InfrastructureError:
    return InfrastructureError(
        f"{table}: {what} cannot be understood", reason_code="lake_metadata_damaged", remedy=RESTORE
    )


class LakeBusy(TransientResourceError):
    """Another writer holds the table for longer than we wait."""

    reason_code = "lake_busy"


class CommitConflict(TransientResourceError):
    """The table moved on between our read and our commit; recompute from the new state."""

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
    """The disk refuses. A person has to act, but then everything goes on by itself."""

    reason_code = "lake_unwritable"
    retry_in_run = False


def write_error(table: str, path: str, error: Exception) -> LakeUnwritable | None:
    """What an error of DuckDB means that comes of writing a file at `path`; None of any other error."""
    said = str(error).strip()
    if "No space left" in said or "Disk quota exceeded" in said:
        return _disk_full(table, said)
    return _unwritable(table, said) if path.removeprefix("file://") in said else None


def _disk_full(table: str, said: object) -> LakeUnwritable:
    return LakeUnwritable(
        f"{table}: no space left for the lake: {said}",
        reason_code="disk_full",
        remedy="free disk space or run the maintenance job",
    )


def _unwritable(table: str, said: object) -> LakeUnwritable:
    return LakeUnwritable(
        f"{table}: the lake cannot be written: {said}",
        remedy="make the lake's folder writable for this user",
    )


@contextmanager
def storage_errors(table: str) -> Iterator[None]:
    """Turn what the disk says while writing into errors that tell a person what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise _unwritable(table, error) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(table, error) from error
        raise
