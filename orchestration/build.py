"""Puts the house together: settings in, Dagster definitions out. Pure wiring, no environment, no I/O."""

import warnings
from collections.abc import Callable

import dagster as dg

from assets.carbon.dropped import DROPPED_KEY
from assets.carbon.tables import carbon_assets
from assets.lake_maintenance import lake_maintenance
from assets.market.daily import daily_assets
from assets.market.derived import derived_assets
from assets.market.history import history_asset
from assets.market.reference import reference_assets
from assets.policies.partitions import weekdays
from assets.run_retention import run_retention
from assets.upload_retention import upload_retention
from domain.carbon.catalogue import catalogue as carbon_catalogue
from domain.market.catalogue import catalogue as market_catalogue
from orchestration.schedules import history_schedule, upkeep_schedule
from orchestration.services import SANDBOX_TOKEN
from orchestration.setting_values import redacted_url
from orchestration.settings import Settings
from resources.lake.resource import LakeResource
from resources.ledger.resource import LedgerResource
from resources.tushare.resource import TushareResource
from sensors.carbon.drop import drop_sensor
from sensors.carbon.feeds import feed_sensor
from sensors.carbon.recalculation import recalculation_sensor
from sensors.market.freshness import market_freshness_sensor
from sensors.market.gap_fill import daily_schedule, gap_fill_sensor
from sensors.work_sweep import work_sweep_sensor
from services.carbon.resource import CarbonResource
from services.market.resource import MarketResource

DATABASE = "PERENNIAL_DATABASE_URL"


def build_definitions(settings: Settings) -> dg.Definitions:
    with warnings.catch_warnings():
        # Backfill policies are marked beta; that we use them is decided, not news at every start.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return _definitions(settings)


def _definitions(settings: Settings) -> dg.Definitions:
    return dg.Definitions.merge(_house(settings), *(DOMAINS[name](settings) for name in settings.domains))


def _house(settings: Settings) -> dg.Definitions:
    """What every domain needs: the care of lake and ledger, and the hand that takes work from the dead."""
    upkeep = [lake_maintenance, run_retention, upload_retention]
    return dg.Definitions(
        assets=upkeep,
        sensors=[work_sweep_sensor],
        schedules=[upkeep_schedule(upkeep)],
        resources=build_resources(settings),
        # A step process costs seconds of imports; nothing here needs isolation.
        executor=dg.in_process_executor,
    )


def _market(settings: Settings) -> dg.Definitions:
    market = market_catalogue()
    days = weekdays(settings.market_start)
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
    )


def _carbon(_: Settings) -> dg.Definitions:
    carbon = carbon_assets(carbon_catalogue())
    recalculated = dg.AssetSelection.assets(*carbon) - dg.AssetSelection.assets(DROPPED_KEY)
    return dg.Definitions(
        assets=carbon, sensors=[drop_sensor, feed_sensor, recalculation_sensor(recalculated)]
    )


DOMAINS: dict[str, Callable[[Settings], dg.Definitions]] = {"market": _market, "carbon": _carbon}


def build_resources(settings: Settings) -> dict[str, dg.ConfigurableResource]:
    """Secrets are named, not copied: the UI shows the variable, never its value."""
    lake = LakeResource(
        catalog_url=_address(
            settings.catalog_url,
            DATABASE if settings.catalog_url == settings.database_url else "PERENNIAL_CATALOG_URL",
        ),
        warehouse=settings.warehouse,
        home=str(settings.home),
        memory_limit=settings.memory_limit,
        threads=settings.threads,
    )
    ledger = LedgerResource(
        url=_address(settings.database_url, DATABASE),
        source=settings.source,
        stopped_at=settings.now.isoformat() if settings.now else "",
    )
    tushare = TushareResource(
        home=str(settings.home),
        source=settings.source,
        token=dg.EnvVar("TUSHARE_TOKEN") if settings.tushare_token else SANDBOX_TOKEN,
        url=_named(settings.tushare_url or "", "TUSHARE_URL"),
        points=settings.tushare_points,
        calls_per_minute=settings.tushare_calls_per_minute or 0,
        timeout_seconds=settings.tushare_timeout_seconds,
    )
    warehouse = MarketResource(
        lake=lake,
        ledger=ledger,
        tushare=tushare,
        gap_window_days=settings.gap_window_days,
        gap_limit=settings.gap_limit,
        daily_at=settings.daily_at.isoformat("minutes"),
        first_day=settings.market_start.isoformat(),
        fetch_workers=settings.fetch_workers,
    )
    office = CarbonResource(
        lake=lake,
        ledger=ledger,
        uploads=settings.uploads,
        drop=str(settings.carbon_drop),
        app_url=_named(settings.carbon_app_url, "PERENNIAL_CARBON_APP_URL"),
        app_token=dg.EnvVar("PERENNIAL_CARBON_APP_TOKEN") if settings.carbon_app_token else "",
        api_url=_named(settings.carbon_api_url, "PERENNIAL_CARBON_API_URL"),
        api_token=dg.EnvVar("PERENNIAL_CARBON_API_TOKEN") if settings.carbon_api_token else "",
    )
    return {"lake": lake, "ledger": ledger, "warehouse": warehouse, "office": office}


def _named(url: str, variable: str) -> str:
    """An address that holds a secret is named by its variable."""
    return dg.EnvVar(variable) if redacted_url(url) != url else url


def _address(url: str, variable: str) -> str:
    """A server's address carries a password, a file's does not."""
    return dg.EnvVar(variable) if url.startswith("postgresql") else url
