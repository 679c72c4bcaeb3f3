"""What starts market runs: the gap-fill sensor and the daily schedule. Both only look; the plan decides."""

from collections.abc import Iterator

import dagster as dg

from assets.policies.tags import DISPATCH
from domain.market.trading import shanghai
from domain.shared.table import ALL
from sensors.unfinished import keys_under_way, unfinished_dispatches
from services.market.reconcile import Reconciliation, Start, reconcile
from services.market.resource import MarketResource


def gap_fill_sensor(assets: dg.AssetSelection) -> dg.SensorDefinition:
    @dg.sensor(
        name="market_gap_fill_sensor",
        # Not `target`: a job of its own could not span the calendar's years and the tables' days.
        asset_selection=assets,
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds days that are missing, thin, damaged or changed, and references that are due.",
    )
    def gap_fill(context: dg.SensorEvaluationContext, market_service: MarketResource) -> dg.SensorResult:
        at_work = keys_under_way(context.instance)
        seen = reconcile(market_service.open(), unfinished_dispatches(context.instance), under_way=at_work)
        return dg.SensorResult(
            run_requests=[run_request(start) for start in seen.starts],
            skip_reason=None if seen.starts else _nothing(seen),
        )

    return gap_fill


def daily_schedule(assets: dg.AssetSelection, cron: str) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="market_daily_schedule",
        target=assets,
        cron_schedule=cron,
        execution_timezone="Asia/Shanghai",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="The daily look: from here today is due. The gap-fill sensor makes up for a missed one.",
    )
    def daily(
        context: dg.ScheduleEvaluationContext, market_service: MarketResource
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        market = market_service.open()
        at_work = keys_under_way(context.instance)
        seen = reconcile(market, unfinished_dispatches(context.instance), references=False, under_way=at_work)
        for start in seen.starts:
            yield run_request(start)
        if not seen.starts:
            today = shanghai(market.clock()).date()
            closed = "" if market.calendar().is_open(today) else f"{today} is a closed day; "
            yield dg.SkipReason(closed + _nothing(seen))

    return daily


def run_request(start: Start) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=start.dispatch_id,
        partition_key=None if start.partition == ALL else start.partition,
        asset_selection=[dg.AssetKey(["market", name]) for name in start.tables],
        tags={
            DISPATCH: start.dispatch_id,
            "perennial/domain": "market",
            "dagster/priority": str(start.priority),
        },
    )


def _nothing(seen: Reconciliation) -> str:
    waiting = len(seen.plan.due)
    return f"{waiting} partitions are waiting for their next attempt" if waiting else "nothing is due"
