"""The market domain: a daily A-share warehouse fed from Tushare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestration.domain import Domain, Sandbox, constant, function
from orchestration.sandboxes import home_sandbox
from orchestration.services import settings_of
from orchestration.settings import Settings

if TYPE_CHECKING:
    from datetime import datetime

    import dagster as dg

    from domain.shared.table import Table
    from services.market.service import MarketService
    from services.market.settings import MarketSettings


def market_settings(settings: Settings) -> MarketSettings:
    from services.market.settings import MarketSettings

    return settings_of(settings, DOMAIN.name, MarketSettings)


def open_market(settings: Settings, *, write: bool = False) -> MarketService:
    from services.market.opening import open_service

    return open_service(market_settings(settings), write=write)


def _tables() -> Sequence[Table]:
    from domain.market.catalogue import catalogue
    from domain.market.tables import all_tables

    return all_tables(catalogue())


def _definitions(settings: Settings) -> dg.Definitions:
    import dagster as dg

    from assets.market.jobs import market_jobs
    from assets.market.tables import daily_assets, derived_assets, reference_assets, weekdays
    from assets.policies.definition import years
    from domain.market.catalogue import catalogue
    from domain.shared.years import this_year
    from sensors.market.freshness import market_freshness_sensor
    from sensors.market.gap_fill import daily_schedule, gap_fill_sensor
    from services.market.resource import MarketResource
    from services.resource import resource_text

    group = market_settings(settings)
    market, days, waits = catalogue(), weekdays(group.market_start), group.tushare_retry_delays
    # In January the calendar of the year before is needed too.
    calendars = years(group.market_start.year - 1, this_year(group.business_clock()) + 1)
    fetched = [*reference_assets(market, calendars, waits), *daily_assets(market, days, waits)]
    derived = derived_assets(market, days)
    by_day = dg.AssetSelection.assets(*(a for a in [*fetched, *derived] if a.partitions_def == days))
    healed = dg.AssetSelection.assets(*fetched, *derived)
    return dg.Definitions(
        assets=[*fetched, *derived],
        jobs=market_jobs(by_day),
        sensors=[gap_fill_sensor(healed), market_freshness_sensor],
        schedules=[daily_schedule(by_day, f"{group.daily_at.minute} {group.daily_at.hour} * * 1-5")],
        resources={"market_service": MarketResource(settings=resource_text(group, type(group)))},
    )


def _prepare(settings: Settings) -> None:
    open_market(settings, write=True)  # the home keeps its first day before the definitions are loaded


def _sandbox(settings: Settings) -> Sandbox | None:
    group = market_settings(settings)
    if group.source != "sandbox":
        return None
    table = f"{DOMAIN.name}.normalized_daily"
    return Sandbox(group.tushare_url, table=table) if group.tushare_url else home_sandbox(settings, table)


def _reference_time(settings: Settings) -> datetime | None:
    from services.market.findings import source_time

    return source_time(market_settings(settings))


DOMAIN = Domain(
    name="market",
    settings=constant("services.market.settings:MarketSettings"),
    open=open_market,
    tables=_tables,
    views=function("domain.market.tables:views"),
    kinds=constant("domain.market.plan:KINDS"),
    ledger_tables={"market.source_freshness": constant("resources.ledger.schema:source_freshness")},
    definitions=_definitions,
    pools=constant("assets.market.pools:LIMITS"),
    findings=function("services.market.findings:find_problems"),
    sources=function("services.market.findings:source_states"),
    watch=function("services.market.findings:watch_market"),
    checks=constant("services.market.findings:CHECKS"),
    reference_time=_reference_time,
    late_codes=constant("domain.market.health:LATE_CODES"),
    begin="perennial market backfill --from DAY",
    commands=constant("orchestration.cli.market:app"),
    demo=function("orchestration.cli.market_demo:show_market"),
    sandbox=_sandbox,
    prepare=_prepare,
)
