"""The market domain: a daily A-share warehouse fed from Tushare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from domain.shared.error import PerennialError
from orchestration.domain import Check, Demonstrated, Domain, Planned, Sandbox, Watched
from orchestration.services import settings_of
from orchestration.settings import Settings

if TYPE_CHECKING:
    import dagster as dg
    import typer
    from sqlalchemy import Table as DatabaseTable

    from domain.shared.health import Finding
    from domain.shared.table import Table
    from domain.shared.work import Kind
    from services.market.service import MarketService
    from services.market.settings import MarketSettings


def _tables() -> Sequence[Table]:
    from domain.market.catalogue import catalogue
    from domain.market.tables import all_tables

    return all_tables(catalogue())


def _views() -> Mapping[str, str]:
    from domain.market.tables import views

    return views()


def _kinds() -> Sequence[Kind]:
    from domain.market.plan import KINDS

    return KINDS


def _ledger_views() -> Mapping[str, DatabaseTable]:
    from resources.ledger.schema import source_freshness

    return {"market.source_freshness": source_freshness}


def _settings() -> type[MarketSettings]:
    from services.market.settings import MarketSettings

    return MarketSettings


def market_settings(settings: Settings) -> MarketSettings:
    return settings.group(DOMAIN.name, _settings())


def open_market(settings: Settings, *, write: bool = False) -> MarketService:
    from services.market.opening import open_service

    return open_service(settings_of(settings, DOMAIN.name, _settings()), write=write)


def _definitions(settings: Settings) -> dg.Definitions:
    import dagster as dg

    from assets.market.tables import daily_assets, derived_assets, history_asset, reference_assets
    from assets.policies.partitions import weekdays
    from domain.market.catalogue import catalogue
    from sensors.market.freshness import market_freshness_sensor
    from sensors.market.gap_fill import daily_schedule, gap_fill_sensor
    from sensors.market.history import history_schedule
    from services.market.resource import MarketResource
    from services.resource import resource_text

    group = market_settings(settings)
    market, days, waits = catalogue(), weekdays(group.market_start), group.tushare_retry_delays
    fetched = [*reference_assets(market, waits), *daily_assets(market, days, waits)]
    derived = derived_assets(market, days)
    history = history_asset(market)
    by_day = dg.AssetSelection.assets(*(a for a in [*fetched, *derived] if a.partitions_def == days))
    healed = dg.AssetSelection.assets(*fetched, *derived, history)
    return dg.Definitions(
        assets=[*fetched, *derived, history],
        sensors=[gap_fill_sensor(healed), market_freshness_sensor],
        schedules=[
            daily_schedule(by_day, f"{group.daily_at.minute} {group.daily_at.hour} * * 1-5"),
            history_schedule(history),
        ],
        resources={"market_service": MarketResource(settings=resource_text(group, type(group)))},
    )


def _pools() -> Mapping[str, int]:
    from assets.market.pools import LIMITS

    return LIMITS


def _plan(settings: Settings) -> Planned:
    market = open_market(settings)
    now = market.clock()
    plan = market.plan(now)
    return Planned(now, len(plan.due), plan.verdicts)


def _watch(settings: Settings) -> Watched:
    from domain.market.watchdog import watch

    try:
        market = open_market(settings)
        now = market.clock()
        seen = watch(market.catalogue, market.observe(now), market.source_freshness(), now, market.rules)
    except PerennialError as error:
        # A watchdog that cannot look says so in its one line; cron reads nothing else.
        line = f"ALERT market: {error.message.splitlines()[0]}"
        return Watched(False, line, {"latest_day": None, "problems": [error.message]})
    return Watched(seen.ok, seen.line, {"latest_day": seen.latest_day, "problems": list(seen.problems)})


def _findings(settings: Settings) -> list[Finding]:
    from services.market.findings import findings

    return findings(open_market(settings))


def _check_source(settings: Settings) -> str:
    from services.market.checks import check_source

    return f"{market_settings(settings).source} answers ({check_source(open_market(settings))})"


def _checks(_: Settings) -> Mapping[str, Check]:
    return {"source": _check_source}


def _commands() -> typer.Typer:
    from orchestration.cli.market import app

    return app


def _demo(settings: Settings, *, shown: bool) -> Demonstrated:
    from orchestration.cli.market_demo import show_market

    return show_market(settings, shown=shown)


def _sandbox(settings: Settings) -> Sandbox | None:
    group = market_settings(settings)
    if group.source != "sandbox":
        return None
    from resources.tushare.sandbox_process import recorded_sandbox, remember_sandbox

    if group.tushare_url:
        return Sandbox(group.tushare_url, None, lambda _: None)
    own = f"http://127.0.0.1:{group.sandbox_port}"
    return Sandbox(
        recorded_sandbox(group.home) or own,
        group.sandbox_port,
        lambda process: remember_sandbox(group.home, own, process),
    )


DOMAIN = Domain(
    name="market",
    settings=_settings,
    tables=_tables,
    views=_views,
    kinds=_kinds,
    ledger_views=_ledger_views,
    definitions=_definitions,
    pools=_pools,
    plan=_plan,
    watch=_watch,
    findings=_findings,
    checks=_checks,
    commands=_commands,
    demo=_demo,
    sandbox=_sandbox,
)
