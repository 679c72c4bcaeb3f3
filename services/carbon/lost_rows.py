"""Kept rows of files that were lost, kept again when the very same file comes again.

Several people may be told to bring a lost file. The first brings its rows back, and is noted; whoever brings
the same file soon after finds the rows there, and means the same. Without the note it would be news, and undo
what came since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import pyarrow as pa

from domain.carbon.jobs import KIND_OF
from domain.carbon.tables import DATA_ENTRIES, FACTORS, UNITS
from domain.shared.error import InfrastructureError, InvalidInput
from resources.ledger.provenance import PartitionRecord
from resources.ledger.uploads import Upload
from resources.objects.staging import LOST
from services.carbon.service import CarbonService

RESTORED_RECORD = "carbon.restored_uploads"
"""Under this name the ledger keeps, by pipeline, which rows were brought back, and when."""
SAME_RESTORE = timedelta(days=1)
"""So long after its rows were brought back the same file again is the same restore, unless a person says that
it is to be the newest."""

_TABLES = {"units": UNITS.table, "factors": FACTORS.table, "data": DATA_ENTRIES.table}


def mend_staged(carbon: CarbonService, wanted: Upload, content: bytes, rows: pa.Table) -> list[Upload]:
    """The uploads of this very file that have their rows again, oldest first. Each keeps its place: newer
    files still come after it.

    An upload stands for as long as any year is made of it: a file of two years that a newer one took the
    place of in one of them, and of factors every file that ever brought some. Taken in as the newest instead,
    it would undo what came since.
    """
    lost = [one for one in _same_uploads(carbon, wanted) if not _is_there(carbon, one)]
    # Noted first: whoever finds the rows there finds the note too, without any lock around both.
    _note(carbon, lost)
    for one in lost:
        carbon.staging.remove(one.pipeline_id)
        carbon.staging.keep(one.pipeline_id, content, rows)
    return lost


def lost_uploads(carbon: CarbonService) -> list[Upload]:
    """Those that still say something and whose rows are gone, oldest first: nobody else sees it before a
    partition has to be made of them again. Whether rows are whole is seen when they are read."""
    standing, kept = carbon.ledger.uploads.standing(), carbon.staging.kept()
    return carbon.ledger.uploads.find(ids=[one.id for one in standing if one.pipeline_id not in kept])[::-1]


def mended_lately(carbon: CarbonService, wanted: Upload) -> list[Upload]:
    """The uploads of this very file whose rows somebody brought back not long ago, oldest first."""
    same = _same_uploads(carbon, wanted)
    records = carbon.provenance.records([RESTORED_RECORD], [one.pipeline_id for one in same])
    since = carbon.clock() - SAME_RESTORE
    lately = {
        name for (_, name), record in records.items() if record.checked_at and record.checked_at > since
    }
    return [one for one in same if one.pipeline_id in lately]


def _note(carbon: CarbonService, lost: Iterable[Upload]) -> None:
    carbon.provenance.record(
        [PartitionRecord(RESTORED_RECORD, one.pipeline_id, one.taken, one.sha256) for one in lost]
    )


def _same_uploads(carbon: CarbonService, wanted: Upload) -> list[Upload]:
    """The uploads of this very file that still say something, oldest first."""
    ids = [one.id for one in carbon.ledger.uploads.standing() if one.kind == wanted.kind]
    return [one for one in carbon.ledger.uploads.find(ids=ids)[::-1] if _identity(one) == _identity(wanted)]


def _identity(one: Upload) -> tuple[object, ...]:
    return one.place, one.sha256, one.years, one.taken


def retry_with(carbon: CarbonService, mended: Iterable[Upload]) -> tuple[int, ...]:
    """The work that was given up for want of these rows; a locked year's is left to whoever unlocks it."""
    locked = carbon.ledger.year_locks.held()
    keys = sorted({(one.kind, _key(one, year)) for one in mended for year in one.years if year not in locked})
    found = (_retried(carbon, KIND_OF[_TABLES[kind]], key) for kind, key in keys)
    return tuple(number for numbers in found for number in numbers)


def _key(one: Upload, year: int) -> str:
    return f"{_TABLES[one.kind]}:{one.topic}|{year}" if one.topic else f"{_TABLES[one.kind]}:{year}"


def _retried(carbon: CarbonService, kind: str, key: str) -> Sequence[int]:
    newest = carbon.ledger.find(kind, key, limit=1)
    if not newest or newest[0].status != "failed" or newest[0].reason_code != LOST:
        return ()
    try:
        return (carbon.ledger.retry(newest[0].id).id,)
    except InvalidInput as error:
        if error.reason_code != "already_running":
            raise
        return ()  # somebody who brought the same file was faster


def _is_there(carbon: CarbonService, one: Upload) -> bool:
    try:
        carbon.staging.rows(one.pipeline_id)
    except InfrastructureError as error:
        if error.reason_code != LOST:
            raise
        return False
    return True
