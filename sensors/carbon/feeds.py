"""What listens to applications beside us. It only notes what changed there; the other sensor has it read."""

import json

import dagster as dg

from services.carbon.pull import listen
from services.carbon.resource import CarbonResource

ALL_AFTER = 120
"""Ticks after which everything is asked for again, cursor or not: a change that a cursor missed is heard of
within the hour."""


@dg.sensor(
    name="carbon_feed_sensor",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Hears of applications beside us which entries changed there.",
)
def feed_sensor(context: dg.SensorEvaluationContext, office: CarbonResource) -> dg.SensorResult:
    carbon = office.open()
    if not carbon.feeds:
        return dg.SensorResult(skip_reason="no application is set: PERENNIAL_CARBON_APP_URL")
    known = json.loads(context.cursor or "{}")
    ticks = known.get("ticks", 0) % ALL_AFTER
    heard = listen(carbon, known.get("cursors", {}) if ticks else {})
    told = [f"{one.origin}: {one.error.message if one.error else f'{one.places} changes'}" for one in heard]
    cursors = {one.origin: one.cursor for one in heard}
    return dg.SensorResult(
        skip_reason="; ".join(told), cursor=json.dumps({"ticks": ticks + 1, "cursors": cursors})
    )
