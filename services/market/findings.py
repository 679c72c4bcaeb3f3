"""The findings about the market: what is unhealthy, and why; and its watchdog."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from domain.market import health
from domain.market.freshness import freshness
from domain.market.observed import Observed
from domain.market.plan import FILL, REFRESH
from domain.market.trading import shanghai
from domain.market.watchdog import MarketWatch, watch
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.freshness import SourceState
from domain.shared.health import Finding, SourceFreshness
from domain.shared.verdict import Plan
from resources.tushare.request import TushareRequest
from services.market.service import MarketService

if TYPE_CHECKING:
    from services.market.settings import MarketSettings


def find_problems(market: MarketService) -> list[Finding]:
    """The worst first."""
    now = market.clock()
    seen = market.observe(now)
    return _findings(market, seen, market.plan_of(seen, now), now)


def _findings(market: MarketService, seen: Observed, plan: Plan, now: datetime) -> list[Finding]:
    return health.findings(
        plan,
        market.ledger.current((FILL, REFRESH)),
        market.source_freshness(),
        seen.calendar,
        now,
        machine_clock(),
        holes={} if market.rules.heal_history else seen.holes,
        earlier=seen.earlier,
    )


def watch_market(market: MarketService) -> MarketWatch:
    """Whether no day of any age is late or wrong, and the sources answer."""
    now = market.clock()
    seen = market.observe(now)
    plan = market.plan_of(seen, now)
    explained = {f.subject for f in _findings(market, seen, plan, now) if f.health == "explained"}
    sources = market.source_freshness()
    return watch(market.catalogue, plan, seen, sources, now, market.rules, explained)


def source_states(market: MarketService) -> list[tuple[SourceFreshness, SourceState]]:
    """When every source of the catalogue last answered and last failed, and what that means now."""
    calendar, now = market.calendar(), market.clock()
    return [(one, freshness(one, calendar, now)) for one in market.source_freshness()]


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


def source_time(settings: MarketSettings) -> datetime | None:
    """Return the time by the source's clock; None if it does not say, or ours is stopped by a setting."""
    if not settings.tushare_url or settings.now is not None:
        return None
    from resources.http.clock import read_date

    return read_date(settings.tushare_url)


CHECKS = {"source": check_source}
"""What `perennial doctor` examines of the market."""
