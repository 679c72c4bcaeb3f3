"""Forgetting old readings of applications: an application that is edited all day leaves thousands a week. And
noting beside its rows what was uploaded before there were notes.
"""

from datetime import timedelta

import dagster as dg

from assets.carbon.office import CarbonOffice
from assets.carbon.retention import forget_readings
from assets.carbon.unlisted import note_standing
from assets.policies.definition import OWNERS
from assets.policies.failure import classified

KEEP = timedelta(days=30)


@dg.asset(
    key=["ops", "upload_retention"],
    group_name="ops",
    owners=OWNERS,
    kinds={"parquet"},
    description="Deletes readings of applications after 30 days, once newer ones have taken their place.",
)
def upload_retention(office: CarbonOffice) -> dg.MaterializeResult:
    with classified():
        carbon = office.open()
        gone = forget_readings(carbon, carbon.clock() - KEEP)
        noted = note_standing(carbon.staging, carbon.ledger)
    return dg.MaterializeResult(metadata={"readings_deleted": gone, "uploads_noted": noted})
