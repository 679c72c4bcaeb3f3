"""Upkeep on the clock: the weekly look over the history, the nightly care of the lake."""

import dagster as dg

SHANGHAI = "Asia/Shanghai"


def upkeep_schedules(
    history: dg.AssetsDefinition, maintenance: dg.AssetsDefinition
) -> list[dg.ScheduleDefinition]:
    return [
        dg.ScheduleDefinition(
            name="market_history_schedule",
            target=dg.AssetSelection.assets(history),
            cron_schedule="0 3 * * 0",
            execution_timezone=SHANGHAI,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description="Once a week, the whole history: gaps older than the window are reported.",
        ),
        dg.ScheduleDefinition(
            name="lake_maintenance_schedule",
            target=dg.AssetSelection.assets(maintenance),
            cron_schedule="0 4 * * *",
            execution_timezone=SHANGHAI,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description="Every night: expire, compact, delete.",
        ),
    ]
