"""The findings about the market: what is unhealthy, and why; and its watchdog."""

from __future__ import annotations

from domain.market import health
from domain.market.plan import FILL, REFRESH
from domain.market.watchdog import Watch, watch
from domain.shared.clock import machine_clock
from domain.shared.health import Finding, unobserved
from resources.lake.error import DataUnavailable
from services.market.service import MarketService


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
