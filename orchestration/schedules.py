"""Upkeep on the clock: the weekly look over the history, the nightly care of the lake."""

from collections.abc import Sequence

import dagster as dg

SHANGHAI = "Asia/Shanghai"


def history_schedule(history: dg.AssetsDefinition) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name="market_history_schedule",
        target=dg.AssetSelection.assets(history),
        cron_schedule="0 3 * * 0",
        execution_timezone=SHANGHAI,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Once a week, the whole history: gaps older than the window are reported.",
    )


def upkeep_schedule(upkeep: Sequence[dg.AssetsDefinition]) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name="upkeep_schedule",
        target=dg.AssetSelection.assets(*upkeep),
        cron_schedule="0 4 * * *",
        execution_timezone=SHANGHAI,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Every night: the lake is compacted and tidied, old runs are forgotten.",
    )
