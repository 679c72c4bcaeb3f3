"""Opens what a command needs, without Dagster: a look costs a fraction of a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.registry import kinds, tables, views
from domain.shared.error import InvalidInput
from orchestration.house import require_writable
from orchestration.settings import Settings

if TYPE_CHECKING:
    from resources.feeds.client import FeedClient
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger
    from resources.tushare.client import TushareClient
    from services.carbon.service import CarbonService
    from services.market.service import MarketService

SANDBOX_TOKEN = "sandbox-token"  # noqa: S105 - known to everybody, opens nothing but the sandbox


def require_domain(settings: Settings, domain: str) -> None:
    if domain not in settings.domains:
        raise InvalidInput(
            f"this house does not keep {domain}: PERENNIAL_DOMAINS is {','.join(settings.domains)}",
            reason_code="domain_off",
            remedy=f"unset PERENNIAL_DOMAINS, or add {domain} to it",
        )


def open_lake(settings: Settings) -> Lake:
    from resources.lake.client import Lake

    return Lake.open(
        catalog_url=settings.catalog_url,
        warehouse=settings.warehouse,
        home=settings.home,
        tables=tables(),
        views=views(),
        memory_limit=settings.memory_limit,
        threads=settings.threads,
    )


def open_ledger(settings: Settings, *, write: bool = False) -> Ledger:
    """`write` makes the schema and stamps the source; a look does neither."""
    from resources.ledger.client import Ledger

    if write:
        require_writable(settings)
    ledger = Ledger.open(settings.database_url, kinds=kinds(), clock=settings.business_clock())
    if write:
        ledger.migrate()
        ledger.stamp_source(settings.source)
    return ledger


def open_market(settings: Settings, *, write: bool = False) -> MarketService:
    from domain.market.catalogue import catalogue
    from domain.market.observed import Rules
    from services.market.service import MarketService

    require_domain(settings, "market")
    ledger = open_ledger(settings, write=write)
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
        lake=open_lake(settings),
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


def open_carbon(settings: Settings, *, write: bool = False) -> CarbonService:
    from domain.carbon.catalogue import catalogue
    from resources.staging import Staging
    from services.carbon.service import CarbonService

    require_domain(settings, "carbon")
    return CarbonService(
        catalogue=catalogue(),
        lake=open_lake(settings),
        ledger=open_ledger(settings, write=write),
        staging=Staging.at(settings.uploads),
        feeds=_feeds(settings),
    )


def _feeds(settings: Settings) -> dict[str, FeedClient]:
    if not (settings.carbon_app_url or settings.carbon_api_url):
        return {}  # without importing what speaks HTTP: a look costs a fraction of a second
    from services.carbon.feed_clients import open_feeds

    return open_feeds(
        manual=(settings.carbon_app_url, settings.carbon_app_token),
        api=(settings.carbon_api_url, settings.carbon_api_token),
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
