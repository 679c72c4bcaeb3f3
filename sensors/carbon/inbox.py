"""The sensor of carbon's inbox. It only finds complete files; a run reads them."""

import json

import dagster as dg

from assets.policies.tags import DISPATCH
from domain.carbon.jobs import FILE_INGEST, INBOX_FILES, PRIORITY
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
    return dg.SensorResult(
        run_requests=[run_request(dispatch.id) for dispatch in found.dispatches],
        skip_reason=None
        if found.dispatches
        else f"{len(found.stamps)} files are in the inbox, {found.complete} of them complete",
        cursor=json.dumps(dict(found.stamps)),
    )


def run_request(dispatch_id: str) -> dg.RunRequest:
    return dg.RunRequest(run_key=dispatch_id, asset_selection=[KEY], tags=run_tags(dispatch_id))


def run_tags(dispatch_id: str) -> dict[str, str]:
    return {
        DISPATCH: dispatch_id,
        "dagster/priority": str(PRIORITY[FILE_INGEST]),
    }
