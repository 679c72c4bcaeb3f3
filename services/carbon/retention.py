"""Deleting readings of applications that newer readings superseded. Files that people uploaded stay."""

from __future__ import annotations

from datetime import datetime

from domain.carbon.feeds import ORIGINS
from services.carbon.service import CarbonService


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
    gone = [one for one in carbon.store.uploads.superseded_before(ORIGINS, before) if one.id not in used]
    for one in gone:
        # The note first: without its note, an upload is not missed if the rest fails.
        carbon.staging.remove_note(one.pipeline_id)
        carbon.staging.remove(one.pipeline_id)
    carbon.store.uploads.delete([one.id for one in gone])
    return len(gone)
