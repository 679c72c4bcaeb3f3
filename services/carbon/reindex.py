"""The index of staged uploads: the `upload` table says what staging holds.

Staging is the truth. Beside its rows every upload has a note, written once the index has it; so a note that
the index lacks means that the ledger was lost, or restored from a backup. Then nothing is imported and
nothing made before `reindex` has read the notes.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import orjson

from services.carbon.upload_store import Upload

if TYPE_CHECKING:
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


def _upload(note: bytes) -> Upload:
    values = orjson.loads(note)
    moments = {name: datetime.fromisoformat(values[name]) for name in _MOMENTS if values.get(name)}
    return Upload(**{**values, "years": tuple(values["years"]), **moments})
