"""The market domain: a daily A-share warehouse fed from Tushare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from domain.shared.error import PerennialError
from orchestration.domain import Check, Demonstrated, Domain, Planned, Watched
from orchestration.registry import require_domain
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings

if TYPE_CHECKING:
    import dagster as dg
    import typer
    from sqlalchemy import Table as DatabaseTable

    from domain.shared.health import Finding
    from domain.shared.table import Table
    from domain.shared.work import Kind
    from resources.tushare.client import TushareClient
    from services.market.resource import MarketResource
    from services.market.service import MarketService

SANDBOX_TOKEN = "sandbox-token"  # noqa: S105 - known to everybody, opens nothing but the sandbox


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


def open_market(settings: Settings, *, write: bool = False) -> MarketService:
    from domain.market.catalogue import catalogue
    from domain.market.observed import Rules
    from services.market.service import MarketService

    require_domain(settings, DOMAIN.name)
    ledger = open_ledger(settings, _kinds(), write=write)
    if not write:
        ledger.check_source(settings.source)

    def connect() -> TushareClient:
        from resources.tushare.connect import connect

        return connect(
            home=settings.home,
            source=settings.source,
            token=settings.tushare_token or SANDBOX_TOKEN,
            url=settings.tushare_url or "",
            points=settings.tushare_points,
            calls_per_minute=settings.tushare_calls_per_minute or 0,
            timeout_seconds=settings.tushare_timeout_seconds,
            engine=ledger.engine,
        )

    return MarketService.assemble(
        catalogue=catalogue(),
        lake=open_lake(settings, _tables(), _views()),
        ledger=ledger,
        rules=Rules(
            window_days=settings.gap_window_days,
            limit=settings.gap_limit,
            daily_at=settings.daily_at,
            first_day=settings.market_start,
            configuration=source_fingerprint(settings),
        ),
        connect=connect,
        workers=settings.fetch_workers,
    )


def source_fingerprint(settings: Settings) -> str:
    """The same digest as the Dagster resource's: command and sensor must ask for the same work."""
    from domain.shared.hashing import digest

    return digest(
        [
            settings.source,
            # Where the sandbox listens is nobody's decision: `up` gives it a port, a command another.
            "" if settings.source == "sandbox" else settings.tushare_url or "",
            settings.tushare_token or SANDBOX_TOKEN,
            settings.tushare_points,
        ]
    )


def market_resource(settings: Settings) -> MarketResource:
    import dagster as dg

    from orchestration.build import lake_resource, ledger_resource, secret_url
    from resources.tushare.resource import TushareResource
    from services.market.resource import MarketResource

    return MarketResource(
        lake=lake_resource(settings),
        ledger=ledger_resource(settings),
        tushare=TushareResource(
            home=str(settings.home),
            source=settings.source,
            token=dg.EnvVar("TUSHARE_TOKEN") if settings.tushare_token else SANDBOX_TOKEN,
            url=secret_url(settings.tushare_url or "", "TUSHARE_URL"),
            points=settings.tushare_points,
            calls_per_minute=settings.tushare_calls_per_minute or 0,
            timeout_seconds=settings.tushare_timeout_seconds,
        ),
        gap_window_days=settings.gap_window_days,
        gap_limit=settings.gap_limit,
        daily_at=settings.daily_at.isoformat("minutes"),
        first_day=settings.market_start.isoformat(),
        fetch_workers=settings.fetch_workers,
    )


def _definitions(settings: Settings) -> dg.Definitions:
    import dagster as dg

    from assets.market.daily import daily_assets
    from assets.market.derived import derived_assets
    from assets.market.history import history_asset
    from assets.market.reference import reference_assets
    from assets.policies.partitions import weekdays
    from domain.market.catalogue import catalogue
    from sensors.market.freshness import market_freshness_sensor
    from sensors.market.gap_fill import daily_schedule, gap_fill_sensor
    from sensors.market.history import history_schedule

    market, days = catalogue(), weekdays(settings.market_start)
    waits = settings.tushare_retry_delays
    fetched = [*reference_assets(market, waits), *daily_assets(market, days, waits)]
    derived = derived_assets(market, days)
    history = history_asset(market)
    by_day = dg.AssetSelection.assets(*(a for a in [*fetched, *derived] if a.partitions_def == days))
    return dg.Definitions(
        assets=[*fetched, *derived, history],
        sensors=[gap_fill_sensor(dg.AssetSelection.assets(*fetched, *derived)), market_freshness_sensor],
        schedules=[
            daily_schedule(by_day, f"{settings.daily_at.minute} {settings.daily_at.hour} * * 1-5"),
            history_schedule(history),
        ],
        resources={"warehouse": market_resource(settings)},
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

    return f"{settings.source} answers ({check_source(open_market(settings))})"


def _checks(_: Settings) -> Mapping[str, Check]:
    return {"source": _check_source}


def _commands() -> typer.Typer:
    from orchestration.cli.market import app

    return app


def _demo(settings: Settings, *, shown: bool) -> Demonstrated:
    from orchestration.cli.market_demo import show_market

    return show_market(settings, shown=shown)


DOMAIN = Domain(
    name="market",
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
)
