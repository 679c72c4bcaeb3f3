"""The schedule of the nightly upkeep."""

from typing import Any

import dagster as dg

from assets.policies.tags import REASON


def upkeep_schedule(job: Any, timezone: str) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="upkeep_schedule",
        job=job,
        cron_schedule="0 4 * * *",
        execution_timezone=timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Every night: the lake is compacted and tidied, old runs are forgotten.",
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        context.log.info("start a run of the nightly upkeep")
        return dg.RunRequest(tags={REASON: "nightly upkeep"})

    return nightly
