"""The schedule of the platform's own upkeep."""

from collections.abc import Sequence

import dagster as dg


def upkeep_schedule(upkeep: Sequence[dg.AssetsDefinition]) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name="upkeep_schedule",
        target=dg.AssetSelection.assets(*upkeep),
        cron_schedule="0 4 * * *",
        execution_timezone="Asia/Shanghai",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Every night: the lake is compacted and tidied, old runs are forgotten.",
    )
