"""Opens the market's service from its settings: the one way for commands, runs and sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.market.catalogue import catalogue
from domain.market.observed import Rules
from domain.market.plan import KINDS
from domain.market.tables import all_tables, views
from services.market.asking import KeptAnswers
from services.market.first_day import EXCHANGE_OPENED, keep_first_day, kept_day
from services.market.history import Comparison
from services.market.service import MarketService
from services.market.settings import MarketSettings
from services.storage import open_lake, open_ledger

if TYPE_CHECKING:
    from resources.tushare.client import TushareClient


def allowed_calls(settings: MarketSettings) -> int:
    """How many calls a minute the account may make."""
    from resources.tushare.pace import calls_per_minute

    return settings.tushare_calls_per_minute or calls_per_minute(settings.tushare_points)


def open_service(settings: MarketSettings, *, write: bool = False) -> MarketService:
    """`write` migrates the ledger, stamps the source and keeps the first day; else these are only read."""
    market, ledger = catalogue(), open_ledger(settings, KINDS, write=write)
    first_day, given = settings.market_start, "market_start" in settings.model_fields_set
    if write:
        new = ledger.stamped_source() is None
        ledger.stamp_source(settings.source)
        first_day = keep_first_day(settings.home, first_day, given=given, new=new)
    else:
        ledger.check_source(settings.source)
        if not given and kept_day(settings.home) is None and ledger.stamped_source() is not None:
            first_day = EXCHANGE_OPENED  # nobody said where it begins: every recorded day is judged

    def connect() -> TushareClient:
        from resources.http.faults import Timeouts
        from resources.sandbox.process import ensure_sandbox
        from resources.tushare.client import TushareClient
        from resources.tushare.pace import Pacer

        url, seconds = settings.tushare_url, settings.tushare_timeout_seconds
        if not url and settings.source == "sandbox":
            url = ensure_sandbox(settings.home)
        return TushareClient(
            url=url or None,
            token=settings.token,
            points=settings.tushare_points,
            pacer=Pacer(
                None if settings.source_is_unlimited else ledger.engine,
                per_minute=allowed_calls(settings),
                source=settings.source,
            ),
            timeout=Timeouts(connect=min(10.0, seconds), read=seconds),
        )

    return MarketService(
        catalogue=market,
        lake=open_lake(settings, all_tables(market), views()),
        ledger=ledger,
        provenance=ledger.provenance,
        sources=ledger.freshness,
        clock=ledger.clock,
        rules=Rules(
            window_days=settings.gap_window_days,
            limit=settings.gap_limit,
            daily_at=settings.daily_at,
            first_day=first_day,
            heal_history=settings.market_heal_history,
            configuration=settings.source_fingerprint,
        ),
        connect=connect,
        comparison=Comparison(settings.home / "cache" / "market" / "history.json"),
        answers=KeptAnswers.at(settings.answers, settings.fetch_workers),
        workers=settings.fetch_workers,
    )
