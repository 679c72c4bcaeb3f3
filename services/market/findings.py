"""The findings about the market: what is unhealthy, and why; and its watchdog."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from domain.market import health
from domain.market.plan import FILL, REFRESH
from domain.market.trading import shanghai
from domain.market.watchdog import Watch, watch
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.health import Finding, unobserved
from domain.shared.platform_health import LATE_CODES
from resources.lake.error import DataUnavailable
from resources.tushare.request import TushareRequest
from services.market.service import MarketService

if TYPE_CHECKING:
    from services.market.settings import MarketSettings


def find_problems(market: MarketService) -> list[Finding]:
    """The worst first."""
    now = market.clock()
    seen = market.observe(now)
    gaps, unavailable = _history_gaps(market)
    found = health.findings(
        market.plan_of(seen, now),
        market.ledger.current((FILL, REFRESH)),
        market.source_freshness(),
        seen.calendar,
        now,
        machine_clock(),
        history_gaps=gaps,
        lost=market.days_lost(),
    )
    return sorted([*found, *unavailable], key=lambda f: f.rank)


def _history_gaps(market: MarketService) -> tuple[int, list[Finding]]:
    """Older days with gaps, as the last search of the history found them, unless that cannot be read."""
    query = "SELECT count(DISTINCT trade_date) AS days FROM market.history_gaps"
    try:
        return market.lake.query(query)["days"][0].as_py(), []
    except DataUnavailable as error:
        return 0, [unobserved("market", "history", error)]


def watch_market(market: MarketService) -> Watch:
    """Whether the newest day is near and complete, and the sources answer."""
    now = market.clock()
    return watch(market.catalogue, market.observe(now), market.source_freshness(), now, market.rules)


def check_source(market: MarketService) -> str:
    """One small call, which also proves the token."""
    year = shanghai(market.clock()).year
    schema = market.catalogue.calendar.source_schema
    params = {"exchange": "SSE", "start_date": f"{year}0101", "end_date": f"{year}0131"}
    try:
        rows = market.source.fetch(TushareRequest("trade_cal", params, schema=schema)).num_rows
    except TransientResourceError as error:
        remedy = error.remedy or "see that TUSHARE_URL is right and the source runs"
        raise PerennialError(error.message, remedy=remedy) from error
    return f"the source answers ({rows} calendar days of January {year})"


def source_time(settings: MarketSettings, found: Sequence[Finding] | None = None) -> datetime | None:
    """Return the time by the source's clock, if findings say that it has no rows yet, or without findings."""
    late = found is None or any(f.reason_code in LATE_CODES for f in found)
    if not late or not settings.tushare_url or settings.now is not None:
        return None
    from resources.http.clock import read_date

    return read_date(settings.tushare_url)


CHECKS = {"source": check_source}
"""What `perennial doctor` examines of the market."""
