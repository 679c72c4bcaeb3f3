"""The sensor that polls feeds. It only notes versions; the recalculation sensor has changed scopes read."""

import dagster as dg

from services.carbon.feeds import poll_feeds
from services.carbon.resource import CarbonResource


@dg.sensor(
    name="carbon_feed_sensor",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Polls other applications for changed entries.",
)
def feed_sensor(carbon_service: CarbonResource) -> dg.SkipReason:
    polls = poll_feeds(carbon_service.open())
    return dg.SkipReason("; ".join(poll.summary for poll in polls) or "no application is set")
