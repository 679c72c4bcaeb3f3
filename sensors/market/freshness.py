"""Turns checks red and green between runs: `fresh` if a source is silent, `whole_day` if a day is wrong.

Freshness is judged in the domain on trading time; a policy per asset would call every Monday late.
"""

import json
from collections.abc import Iterator, Mapping

import dagster as dg

from assets.market.checks import FRESH, WHOLE
from assets.policies.definition import asset_key
from domain.market.freshness import freshness
from domain.market.trading import shanghai
from domain.market.watchdog import alarming
from domain.shared.freshness import FreshnessStatus
from domain.shared.hashing import digest
from domain.shared.verdict import Verdict
from services.market.history import PATIENCE
from services.market.resource import MarketResource
from services.market.service import MarketService


@dg.sensor(
    name="market_freshness_sensor",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports on each table whether its source answers (check `fresh`) and whether a day of any "
    "age is late or wrong (check `whole_day`); on change only.",
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
    for found in _whole_days(market, known, seen):
        days, why = found.metadata["first_and_last"].value, found.metadata["reason"].value
        context.log.info("%s: wrong days %s: %s", found.asset_key.path[-1], days, why)
        events.append(found)
    silent = [s for s in seen if s in tables and not seen[s].startswith("healthy")]
    wrong = [name for name in seen if name not in tables and seen[name]]
    parts = [f"these sources do not answer: {', '.join(silent)}"] if silent else []
    parts += [f"these tables have wrong days: {', '.join(wrong)}"] if wrong else []
    return dg.SensorResult(
        asset_events=events,
        cursor=json.dumps(seen),
        skip_reason="; ".join(parts) or f"all {len(tables)} sources are fresh, every day is whole",
    )


def _whole_days(
    market: MarketService, known: Mapping[str, str], seen: dict[str, str]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield the check of each table of which other days are wrong than when it was last reported."""
    now = market.clock()
    state = market.observe(now, PATIENCE)
    wrong: dict[str, list[Verdict]] = {}
    for v in alarming(market.catalogue, market.plan_of(state, now), state, now, market.rules):
        wrong.setdefault(v.table, []).append(v)
    for endpoint in market.catalogue.daily:
        found, name = wrong.get(endpoint.name, []), endpoint.table.name
        days = sorted(v.partition for v in found)
        # With the table's last commit: whatever that run said of its own days, others are wrong.
        marks = [list(market.lake.marks([name])), *sorted([v.partition, v.reason_code] for v in found)]
        # While not every older day is judged, a red check stays red.
        seen[name] = digest(marks) if found else "" if state.every else known.get(name, "")
        if seen[name] != known.get(name, ""):  # what is whole, its runs have said
            partial = {v.reason_code for v in found} == {"partial"}
            yield dg.AssetCheckEvaluation(
                asset_key=asset_key(endpoint.table),
                check_name=WHOLE,
                passed=not found,
                severity=dg.AssetCheckSeverity.WARN if partial else dg.AssetCheckSeverity.ERROR,
                metadata={
                    "wrong_days": len(days),
                    "first_and_last": " … ".join(dict.fromkeys([days[0], days[-1]])) if days else "none",
                    "reason": found[0].reason if found else "every recorded day is as it was recorded",
                },
            )


def _severity(status: FreshnessStatus) -> dg.AssetCheckSeverity:
    """A source that was never asked is a warning: a new home asks for everything within minutes."""
    return dg.AssetCheckSeverity.WARN if status == "never_ingested" else dg.AssetCheckSeverity.ERROR
