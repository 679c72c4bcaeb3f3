"""The schedule that searches the whole market history for gaps, once a week."""

import dagster as dg


def history_schedule(history: dg.AssetsDefinition) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name="market_history_schedule",
        target=dg.AssetSelection.assets(history),
        cron_schedule="0 3 * * 0",
        execution_timezone="Asia/Shanghai",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Once a week, the whole history: gaps older than the window are reported.",
    )
