"""Forgetting old readings of applications: an application that is edited all day leaves thousands a week. And
seeing that the rows of uploads are there, with a note beside those from before there were notes.
"""

import logging
from datetime import timedelta

import dagster as dg

from assets.policies.definition import OWNERS
from assets.policies.failure import classified
from services.carbon.lost_rows import lost_uploads
from services.carbon.resource import CarbonResource
from services.carbon.retention import delete_superseded_readings
from services.carbon.unlisted import note_standing

log = logging.getLogger("perennial.carbon")

KEEP = timedelta(days=30)


@dg.asset(
    key=["ops", "upload_retention"],
    group_name="ops",
    owners=OWNERS,
    kinds={"parquet"},
    description="Deletes readings of applications after 30 days, once newer ones have taken their place; "
    "names uploads whose kept rows are gone.",
)
def upload_retention(office: CarbonResource) -> dg.MaterializeResult:
    with classified():
        carbon = office.open()
        gone = delete_superseded_readings(carbon, carbon.clock() - KEEP)
        noted = note_standing(carbon.staging, carbon.ledger)
        lost = [str(one) for one in lost_uploads(carbon)]
    for one in lost:
        log.warning("its kept rows are gone, upload it again: %s", one)
    return dg.MaterializeResult(
        metadata={
            "readings_deleted": gone,
            "uploads_noted": noted,
            "uploads_without_rows": dg.MetadataValue.json(lost[:100]),
        }
    )
