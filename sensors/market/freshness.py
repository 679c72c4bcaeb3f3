"""Reports a source that went silent: the check `fresh` of its table turns red, and green again.

Freshness is judged in the domain on trading time; a policy per asset would call every Monday late.
"""

import json

import dagster as dg

from assets.market.checks import FRESH
from assets.policies.definition import asset_key
from domain.market.freshness import FreshnessStatus, freshness
from domain.market.trading import shanghai
from services.market.resource import MarketResource


@dg.sensor(
    name="market_freshness_sensor",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports on each table whether its source answers, as the check `fresh`; on change only.",
)
def market_freshness_sensor(
    context: dg.SensorEvaluationContext, market_service: MarketResource
) -> dg.SensorResult:
    market = market_service.open()
    now, calendar = market.clock(), market.calendar()
    tables = {e.source: e.table for e in market.catalogue.daily}
    known: dict[str, str] = json.loads(context.cursor) if context.cursor else {}
    seen: dict[str, str] = {}
    events: list[dg.AssetCheckEvaluation] = []
    for source in market.source_freshness():
        if source.source not in tables:
            continue
        fresh = freshness(source, calendar, now)
        # Without the reason: it counts hours, and every hour would be an event.
        seen[source.source] = f"{fresh.status} {source.last_failure if fresh.status == 'error' else ''}"
        if known.get(source.source) == seen[source.source]:
            continue
        since = source.last_success
        reason = fresh.reason or "the last attempt succeeded"
        context.log.info("%s: %s", source.source, reason)
        events.append(
            dg.AssetCheckEvaluation(
                asset_key=asset_key(tables[source.source]),
                check_name=FRESH,
                passed=fresh.status == "healthy",
                severity=_severity(fresh.status),
                metadata={
                    "status": fresh.status,
                    "reason": reason,
                    "last_success": f"{shanghai(since):%Y-%m-%d %H:%M} Shanghai" if since else "never",
                },
            )
        )
    unhealthy = [source for source, status in seen.items() if not status.startswith("healthy")]
    return dg.SensorResult(
        asset_events=events,
        cursor=json.dumps(seen),
        skip_reason=f"these sources do not answer: {', '.join(unhealthy)}"
        if unhealthy
        else f"all {len(seen)} sources are fresh",
    )


def _severity(status: FreshnessStatus) -> dg.AssetCheckSeverity:
    """A source that was never asked is a warning: a new home asks for everything within minutes."""
    return dg.AssetCheckSeverity.WARN if status == "never_ingested" else dg.AssetCheckSeverity.ERROR
