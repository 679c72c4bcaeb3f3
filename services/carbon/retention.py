"""Forgetting what was read of applications and says nothing any more. What people uploaded stays."""

from __future__ import annotations

from datetime import datetime

from domain.carbon.feeds import ORIGINS
from services.carbon.service import CarbonService


def forget_readings(carbon: CarbonService, before: datetime) -> int:
    """Delete readings that came before a moment, with their files. What a table is made of stays."""
    used = {
        int(number)
        for state in carbon.observe().states.values()
        for number in state.inputs.get("uploads", "").split(",")
        if number
    }
    gone = [one for one in carbon.ledger.uploads.outdated(ORIGINS, before) if one.id not in used]
    for one in gone:
        # First the files: a reading that is still known, and has none, is read again if it is ever needed.
        # And its note before them: it is not to be missed.
        carbon.staging.remove_note(one.pipeline_id)
        carbon.staging.remove(one.pipeline_id)
    carbon.ledger.uploads.forget([one.id for one in gone])
    return len(gone)
