"""Deleting superseded readings of applications: one that is edited all day leaves thousands a week.

Uploads that have no note beside their rows, as after a crash, get one.
"""

from datetime import timedelta

import dagster as dg

from assets.policies.definition import OWNERS
from assets.policies.failure import classified
from services.carbon.feeds import delete_superseded_readings
from services.carbon.reindex import write_missing_notes
from services.carbon.resource import CarbonResource

KEEP = timedelta(days=30)


@dg.asset(
    key=["ops", "upload_retention"],
    group_name="ops",
    owners=OWNERS,
    kinds={"parquet"},
    description="Deletes readings of applications after 30 days, once newer ones superseded them.",
)
def upload_retention(carbon_service: CarbonResource) -> dg.MaterializeResult:
    with classified():
        carbon = carbon_service.open()
        gone = delete_superseded_readings(carbon, carbon.clock() - KEEP)
        noted = write_missing_notes(carbon.staging, carbon.store)
    return dg.MaterializeResult(metadata={"readings_deleted": gone, "notes_written": noted})


RETENTION = [upload_retention]
