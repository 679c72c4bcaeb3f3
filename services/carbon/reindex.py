"""The index of staged uploads: the `upload` table says what staging holds.

Staging is the truth. Beside its rows every upload has a note, written once the index has it; so a note that
the index lacks means that the ledger was lost, or restored from a backup. Then nothing is imported and
nothing made before `reindex` has read the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from domain.carbon.jobs import KINDS
from domain.shared.error import InfrastructureError, InvalidInput
from resources.objects.staging import LOST
from services.carbon.upload_store import Upload

if TYPE_CHECKING:
    from resources.ledger.client import Ledger
    from resources.objects.staging import Staging
    from services.carbon.store import CarbonStore

_MOMENTS = ("uploaded_at", "modified_at")


def write_note(staging: Staging, one: Upload) -> None:
    staging.note(one.pipeline_id, orjson.dumps(asdict(one)))


def write_missing_notes(staging: Staging, store: CarbonStore) -> int:
    """Write the notes of uploads that have none, as after a crash; return how many."""
    noted = staging.noted()
    ids = [one.id for one in store.uploads.current() if one.pipeline_id not in noted]
    for one in store.uploads.find(ids=ids):
        write_note(staging, one)
    return len(ids)


def not_indexed(staging: Staging, store: CarbonStore) -> set[str]:
    """Return the pipelines of the staged uploads that the index lacks."""
    noted = staging.noted()  # before the index is read: what has a note then is in it
    return noted - store.uploads.pipelines() if noted else noted


def reindex(staging: Staging, store: CarbonStore) -> list[Upload]:
    """Add what the index lacks, in its old order under new numbers; return what was added."""
    notes = [staging.noted_of(name) for name in not_indexed(staging, store)]
    missing = sorted((_upload(note) for note in notes if note), key=lambda one: (one.moment, one.id))
    added = [store.uploads.record_again(one) for one in missing]
    return [one for one in added if one is not None]


def uploads_without_rows(staging: Staging, store: CarbonStore) -> list[Upload]:
    """Return the uploads that count and whose staged rows are gone, oldest first."""
    kept = staging.kept()
    ids = [one.id for one in store.uploads.current() if one.pipeline_id not in kept]
    return store.uploads.find(ids=ids)[::-1]


def restore_rows(
    staging: Staging, store: CarbonStore, ledger: Ledger, wanted: Upload, content: bytes, rows: pa.Table
) -> Sequence[Upload]:
    """Stage the lost rows of this very file again; return the uploads restored, oldest first.

    Each keeps its number: what superseded it still does. Work that failed for want of the rows is retried.
    """
    same = store.uploads.find(accepted=True, sha256=wanted.sha256)[::-1]
    lost = [one for one in same if _identity(one) == _identity(wanted) and not _has_rows(staging, one)]
    for one in lost:
        staging.remove(one.pipeline_id)
        staging.keep(one.pipeline_id, content, rows)
    failed = ledger.current(tuple(kind.name for kind in KINDS)) if lost else []
    for row in failed:
        if row.status == "failed" and row.reason_code == LOST:
            with suppress(InvalidInput):  # somebody who uploaded the same file retried it
                ledger.retry(row.id)
    return lost


def _identity(one: Upload) -> tuple[object, ...]:
    return one.scope, one.sha256, one.years, one.taken


def _has_rows(staging: Staging, one: Upload) -> bool:
    try:
        staging.rows(one.pipeline_id)
    except InfrastructureError as error:
        if error.reason_code != LOST:
            raise
        return False
    return True


def _upload(note: bytes) -> Upload:
    values = orjson.loads(note)
    moments = {name: datetime.fromisoformat(values[name]) for name in _MOMENTS if values.get(name)}
    return Upload(**{**values, "years": tuple(values["years"]), **moments})
