"""What starts carbon runs: a sensor that only looks; the plan decides."""

import dagster as dg

from assets.policies.tags import DISPATCH, pipeline_tags
from sensors.unfinished import unfinished_dispatches
from services.carbon.reconcile import Start, reconcile
from services.carbon.resource import CarbonResource


def recalculation_sensor(assets: dg.AssetSelection) -> dg.SensorDefinition:
    @dg.sensor(
        name="carbon_recalculation_sensor",
        # Not `target`: a job of its own could not span years, types and modules.
        asset_selection=assets,
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Takes in what was uploaded, recalculates what that changes, and sums up the report.",
    )
    def recalculation(context: dg.SensorEvaluationContext, carbon_service: CarbonResource) -> dg.SensorResult:
        seen = reconcile(carbon_service.open(), unfinished_dispatches(context.instance))
        return dg.SensorResult(
            run_requests=[run_request(start) for start in seen.starts],
            skip_reason=None
            if seen.starts
            else f"{len(seen.plan.due)} partitions wait"
            if seen.plan.due
            else "nothing is due",
        )

    return recalculation


def run_request(start: Start) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=start.dispatch_id,
        asset_selection=[dg.AssetKey(["carbon", name]) for name in written_with(start.table)],
        tags=run_tags(start),
    )


def written_with(table: str) -> tuple[str, ...]:
    """The tables that one writer writes."""
    return ("factors", "factor_versions") if table == "factors" else (table,)


def run_tags(start: Start) -> dict[str, str]:
    first, last = start.corners
    return {
        DISPATCH: start.dispatch_id,
        "perennial/domain": "carbon",
        "dagster/priority": str(start.priority),
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
        **pipeline_tags(list(start.pipelines)),
    }
