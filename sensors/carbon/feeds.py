"""The sensor that polls feeds. It only notes what changed; the recalculation sensor has it read."""

import json

import dagster as dg

from services.carbon.feeds import poll_feeds
from services.carbon.resource import CarbonResource

FULL_POLL_EVERY = 120
"""Ticks after which everything is asked for again: a change that a cursor missed is found within the hour."""


@dg.sensor(
    name="carbon_feed_sensor",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Polls other applications for changed entries.",
)
def feed_sensor(context: dg.SensorEvaluationContext, carbon_service: CarbonResource) -> dg.SensorResult:
    carbon = carbon_service.open()
    if not carbon.feeds:
        return dg.SensorResult(skip_reason="no application is set: PERENNIAL_CARBON_APP_URL")
    known = json.loads(context.cursor or "{}")
    ticks = known.get("ticks", 0) % FULL_POLL_EVERY
    polls = poll_feeds(carbon, known.get("cursors", {}) if ticks else {})
    cursors = {poll.origin: poll.cursor for poll in polls}
    return dg.SensorResult(
        skip_reason="; ".join(poll.summary for poll in polls),
        cursor=json.dumps({"ticks": ticks + 1, "cursors": cursors}),
    )
