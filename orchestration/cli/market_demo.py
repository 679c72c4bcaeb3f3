"""The market's part of the demo: the last trading days are fetched, one is deleted, and it heals."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from domain.market.tables import ADJUSTED_DAILY, COVERAGE
from domain.market.trading import newest_published, shanghai
from domain.shared.error import InvalidInput
from domain.shared.hashing import digest
from orchestration.cli.market import fill
from orchestration.cli.output import say, table
from orchestration.cli.runner import runner
from orchestration.domain import Demonstrated
from orchestration.domains.market import market_settings, open_market
from services.market.backfill import BackfillRequest
from services.market.reconcile import MarketReconciler
from services.run_until_idle import run_until_idle

if TYPE_CHECKING:
    from orchestration.settings import Settings
    from services.market.service import MarketService

DAYS = 60


def show_market(settings: Settings, *, shown: bool) -> Demonstrated:
    """Fetch the last days, delete one, and heal it; a second demo fetches only that day."""
    if market_settings(settings).source != "sandbox":
        raise InvalidInput(
            "the demo makes a hole in the lake, so it runs on the sandbox only",
            remedy="unset TUSHARE_TOKEN or set PERENNIAL_SOURCE=sandbox, with a PERENNIAL_HOME of its own",
        )
    market = open_market(settings, write=True)
    with runner(settings) as run:
        say("1. calendar and stock list, then the newest days, newest first")
        run_until_idle(MarketReconciler(market), run)
    days = market.calendar().newest(DAYS, _newest(market))
    say(f"2. the last {len(days)} trading days, {days[0]} to {days[-1]}, in one run")
    filled = fill(settings, market, BackfillRequest(days[0], days[-1], (), force=False))
    say(f"   {filled.line}")
    dropped_day = days[-2]
    say(f"3. a hole: {dropped_day} is dropped from normalized_daily, behind the platform's back")
    nothing = market.catalogue.by_name("normalized_daily").table.schema.empty_table()
    market.lake.replace("market.normalized_daily", str(dropped_day), nothing, allow_empty=True)
    with runner(settings) as run:
        say("4. the plan sees it and heals it")
        run_until_idle(MarketReconciler(market), run)
    tables = _tables(market, [str(d) for d in days])
    if shown:
        table(["table", "days", "rows", "version", "corrupt days"], [list(row.values()) for row in tables])
    return Demonstrated(filled.ok, {"tables": tables})


def _newest(market: MarketService) -> date:
    newest = newest_published(market.calendar(), market.clock(), market.rules.daily_at)
    return newest or shanghai(market.clock()).date()


def _tables(market: MarketService, days: list[str]) -> list[dict[str, Any]]:
    names = [*(e.name for e in market.catalogue.daily), ADJUSTED_DAILY.table, COVERAGE.table]
    rows = []
    for name in names:
        versions = market.lake.versions(f"market.{name}", days)
        whole = [v for v in versions.values() if v.readable]
        rows.append(
            {
                "table": f"market.{name}",
                "days": sum(1 for v in whole if v.rows),
                "rows": sum(v.rows for v in whole),
                "version": digest({day: str(v) for day, v in versions.items()}),
                "corrupt": sum(v.corrupt for v in versions.values()),
            }
        )
    return rows
