"""The sensor of carbon's inbox. It only finds complete files; a run reads them."""

import json
from collections.abc import Sequence

import dagster as dg

from assets.policies.tags import DISPATCH, LONGEST_REASON, REASON
from domain.carbon.jobs import FILE_INGEST, INBOX_FILES, PRIORITY
from domain.shared.work import Work
from resources.ledger.model import Dispatch
from sensors.reconcile import unfinished
from services.carbon.inbox import open_inbox
from services.carbon.resource import CarbonResource
from services.inbox import PASS_SECONDS, poll

KEY = dg.AssetKey(["carbon", INBOX_FILES])


@dg.sensor(
    name="carbon_inbox_sensor",
    asset_selection=[KEY],
    minimum_interval_seconds=int(PASS_SECONDS),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Has files imported that were put into carbon's inbox.",
)
def inbox_sensor(context: dg.SensorEvaluationContext, carbon_service: CarbonResource) -> dg.SensorResult:
    before = json.loads(context.cursor or "{}")
    dispatches = unfinished(context.instance).dispatches
    carbon = carbon_service.open()
    found = poll(open_inbox(carbon.inbox_folder), carbon.ledger, before, dispatches)
    for dispatch in found.dispatches:
        context.log.info("start a run for %s", reason_of(dispatch.rows))
    inside = f"{len(found.stamps)} files are in the inbox, {found.complete} of them complete"
    return dg.SensorResult(
        run_requests=[run_request(dispatch) for dispatch in found.dispatches],
        skip_reason=None if found.dispatches else inside if found.stamps else "the inbox is empty",
        cursor=json.dumps(dict(found.stamps)),
    )


def run_request(dispatch: Dispatch) -> dg.RunRequest:
    return dg.RunRequest(run_key=dispatch.id, asset_selection=[KEY], tags=run_tags(dispatch))


def run_tags(dispatch: Dispatch) -> dict[str, str]:
    return {
        DISPATCH: dispatch.id,
        REASON: reason_of(dispatch.rows)[:LONGEST_REASON],
        "dagster/priority": str(PRIORITY[FILE_INGEST]),
    }


def reason_of(rows: Sequence[Work]) -> str:
    """The files of a run, in words: "file in the inbox: data/2025/paper.csv", "12 files in the inbox"."""
    if len(rows) == 1:
        return f"file in the inbox: {rows[0].partition}"
    return f"{len(rows)} files in the inbox"
