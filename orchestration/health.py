"""The health of everything: each domain's findings, and those of the house itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError
from domain.shared.health import Finding
from orchestration.house import house_findings
from orchestration.services import open_carbon, open_market
from orchestration.settings import Settings
from resources.lake.error import DataUnavailable
from resources.ledger.attention import attention

if TYPE_CHECKING:
    from services.market.service import MarketService


def platform_findings(settings: Settings) -> list[Finding]:
    """The worst first. What cannot be looked at is a finding too: this look must always answer."""
    house = list(house_findings(settings))
    try:
        found = [f for domain in settings.domains for f in FINDINGS[domain](settings)]
    except PerennialError as error:
        # A house in disorder is why nothing can be seen; said twice it would look like two troubles.
        found = [] if house else [_blind(settings, error)]
    return sorted([*house, *found], key=lambda f: f.rank)


def _blind(settings: Settings, error: PerennialError) -> Finding:
    return _unseen("house", str(settings.home), error)


def _unseen(domain: str, subject: str, error: PerennialError) -> Finding:
    return Finding(
        domain=domain,
        subject=subject,
        health="broken",
        reason_code=error.reason_code,
        reason=error.message,
        since=None,
        next_attempt=None,
        action=error.remedy or "see `perennial doctor`",
    )


def market_findings(settings: Settings) -> list[Finding]:
    from domain.market.health import findings
    from domain.market.plan import FILL, REFRESH

    market = open_market(settings)
    now = market.clock()
    seen = market.observe(now)
    gaps, blind = _history_gaps(market)
    found = findings(
        market.plan_of(seen, now),
        attention(market.ledger.engine, (FILL, REFRESH)),
        market.source_freshness(),
        seen.calendar,
        now,
        machine_clock(),
        history_gaps=gaps,
        lost=market.days_lost(),
    )
    return sorted([*found, *blind], key=lambda f: f.rank)


def _history_gaps(market: MarketService) -> tuple[int, list[Finding]]:
    """Older days with gaps, as the last look over the history found them, unless that cannot be read."""
    query = "SELECT count(DISTINCT trade_date) AS days FROM market.history_gaps"
    try:
        return market.lake.query(query)["days"][0].as_py(), []
    except DataUnavailable as error:
        return 0, [_unseen("market", "history", error)]


def carbon_findings(settings: Settings) -> list[Finding]:
    from domain.carbon.health import findings, strays
    from domain.carbon.health import unlisted as told_as_unlisted
    from domain.carbon.jobs import ALL_KINDS
    from services.carbon.drop_folder import DropFolder
    from services.carbon.service import freshness_of
    from services.carbon.unlisted import unlisted

    carbon = open_carbon(settings)
    work = attention(carbon.ledger.engine, tuple(kind.name for kind in ALL_KINDS))
    seen = carbon.observe()
    now = {freshness_of(origin) for origin in carbon.feeds}
    beside = DropFolder(settings.carbon_drop).strays()
    found = findings(
        carbon.plan_of(seen),
        work,
        carbon.clock(),
        machine_clock(),
        [one for one in carbon.ledger.freshness.all("carbon") if one.source in now],
        seen.feed_reads,
    )
    found += [strays(beside)] if beside else []
    forgotten = [str(one) for one in unlisted(carbon.staging, carbon.ledger)]
    found += [told_as_unlisted(forgotten)] if forgotten else []
    return sorted(found, key=lambda f: f.rank)


FINDINGS: dict[str, Callable[[Settings], list[Finding]]] = {
    "market": market_findings,
    "carbon": carbon_findings,
}
