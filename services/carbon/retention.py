"""Deleting readings of applications that newer readings superseded. Files that people uploaded stay."""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.carbon.feeds import ORIGINS
from services.carbon.service import CarbonService

KEEP_NOTES = timedelta(days=90)
"""Notes of files that were dropped and are done with."""


def delete_superseded_readings(carbon: CarbonService, before: datetime) -> int:
    """Delete superseded readings from before a moment, with their files; return how many.

    What a table was made from stays.
    """
    used = {
        int(number)
        for state in carbon.observe().states.values()
        for number in state.inputs.get("uploads", "").split(",")
        if number
    }
    gone = [one for one in carbon.store.uploads.outdated(ORIGINS, before) if one.id not in used]
    for one in gone:
        # The note first: without its note, an upload is not missed if the rest fails.
        carbon.staging.remove_note(one.pipeline_id)
        carbon.staging.remove(one.pipeline_id)
    carbon.store.uploads.forget([one.id for one in gone])
    carbon.store.dropped_files.forget(carbon.ledger.machine_clock() - KEEP_NOTES)
    return len(gone)
