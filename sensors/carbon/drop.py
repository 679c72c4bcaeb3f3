"""What takes files from the drop folder. They are checked and noted here; the other sensor does the rest."""

from pathlib import Path

import dagster as dg

from assets.carbon.drop import take_dropped
from assets.carbon.office import CarbonOffice


@dg.sensor(
    name="carbon_drop_sensor",
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Takes in files that were put into the drop folder.",
)
def drop_sensor(context: dg.SensorEvaluationContext, office: CarbonOffice) -> dg.SkipReason:
    found = take_dropped(office.open(), Path(office.drop))
    for one in found:
        context.log.info("%s: %s %s", one.path, one.outcome, one.why)
    if not found:
        return dg.SkipReason("nothing lies in the drop folder")
    refused = sum(one.outcome == "refused" for one in found)
    return dg.SkipReason(f"{len(found) - refused} files taken in, {refused} refused")
