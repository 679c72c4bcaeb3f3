"""What starts market runs: the gap-fill sensor and the daily schedule."""

import dagster as dg

from domain.market.trading import SHANGHAI, shanghai
from sensors.reconcile import reconcile_schedule, reconcile_sensor
from services.market.reconcile import MarketReconciler
from services.market.service import MarketService


def gap_fill_sensor(assets: dg.AssetSelection) -> dg.SensorDefinition:
    return reconcile_sensor(
        "market_gap_fill_sensor",
        "market_service",
        MarketReconciler,
        assets,
        "Finds days that are missing, incomplete, corrupt or changed, and references that are due.",
    )


def daily_schedule(assets: dg.AssetSelection, cron: str) -> dg.ScheduleDefinition:
    """It starts days only: a schedule's runs have its partitions, and the sensor starts references."""
    return reconcile_schedule(
        "market_daily_schedule",
        "market_service",
        lambda market: MarketReconciler(market, references=False),
        assets,
        "The daily pass: from here today is due. The gap-fill sensor makes up for a missed one.",
        cron=cron,
        timezone=SHANGHAI.key,
        note=_closed,
    )


def _closed(market: MarketService) -> str:
    today = shanghai(market.clock()).date()
    return "" if market.calendar().is_open(today) else f"{today} is a closed day; "
