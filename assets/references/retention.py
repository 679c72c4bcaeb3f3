"""Deleting old scrape runs: a source that is read every minute leaves half a million a year."""

from datetime import timedelta

import dagster as dg

from assets.policies.definition import OWNERS
from assets.policies.failure import classified
from services.references.resource import ReferencesResource

KEEP = timedelta(days=90)


@dg.asset(
    key=["ops", "scrape_retention"],
    group_name="ops",
    owners=OWNERS,
    kinds={"sql"},
    description="Deletes scrape runs after 90 days. References, documents and hand-offs stay.",
)
def scrape_retention(refs_service: ReferencesResource) -> dg.MaterializeResult:
    with classified():
        references = refs_service.open()
        deleted = references.store.delete_scrape_runs(references.clock() - KEEP)
    return dg.MaterializeResult(metadata={"scrape_runs_deleted": deleted})


RETENTION = [scrape_retention]
