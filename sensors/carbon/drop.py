"""What watches the drop folder. It only notes what has come to rest there; a run reads it."""

from pathlib import Path

import dagster as dg

from assets.policies.tags import DISPATCH
from domain.carbon.jobs import DROPPED, FILE_INGEST, PRIORITY
from sensors.unfinished import unfinished_dispatches
from services.carbon.drop_look import look_at_drop
from services.carbon.resource import CarbonResource

KEY = dg.AssetKey(["carbon", DROPPED])


@dg.sensor(
    name="carbon_drop_sensor",
    asset_selection=[KEY],
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Has files taken in that were put into the drop folder.",
)
def drop_sensor(context: dg.SensorEvaluationContext, office: CarbonResource) -> dg.SensorResult:
    seen = look_at_drop(
        office.open(), Path(office.drop), context.cursor or "", unfinished_dispatches(context.instance)
    )
    return dg.SensorResult(
        run_requests=[run_request(start.id) for start in seen.starts],
        skip_reason=None
        if seen.starts
        else f"{seen.lying} files lie there, {seen.resting} of them at rest"
        if seen.lying
        else "nothing lies in the drop folder",
        cursor=seen.cursor,
    )


def run_request(dispatch_id: str) -> dg.RunRequest:
    return dg.RunRequest(run_key=dispatch_id, asset_selection=[KEY], tags=run_tags(dispatch_id))


def run_tags(dispatch_id: str) -> dict[str, str]:
    return {
        DISPATCH: dispatch_id,
        "perennial/domain": "carbon",
        "dagster/priority": str(PRIORITY[FILE_INGEST]),
    }
