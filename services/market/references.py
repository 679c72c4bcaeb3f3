"""Fetching the references: the trading calendar of a year, the list of all stocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from domain.market.answer import NotYetData, check_calendar, check_distinct
from domain.market.catalogue import Endpoint
from domain.market.plan import REFRESH
from domain.market.trading import OPENED
from domain.shared.table import ALL
from resources.tushare.request import TushareRequest
from services.market.service import MarketService
from services.partitions import Attempt, Built, NotBuilt, Notify, Request, one_at_a_time

EXCHANGES = tuple(OPENED)
NEVER_EMPTY = ("SSE", "SZSE")
"""Exchanges that always list a stock."""
LIST_STATUS = ("L", "D", "P", "G")
SHRUNK_BELOW = 0.90


def fetch_calendar(market: MarketService, years: Sequence[str], this: Attempt, report: Notify) -> None:
    """All days of a year of all exchanges; a year that is not announced whole is not data yet."""
    endpoint = market.catalogue.calendar

    def build(request: Request) -> Built:
        year = int(request.partition)
        frame = pa.concat_tables(_calendar_of(market, endpoint, exchange, year) for exchange in EXCHANGES)
        if not frame.num_rows:
            raise NotYetData(
                f"{endpoint.endpoint} {year}: no day of any exchange; the first opened in "
                f"{min(OPENED.values()).year}",
                reason_code="incomplete",
            )
        return Built(request.partition, {endpoint.table.name: frame}, detail={"status": "complete"})

    _fetch(market, endpoint, years, this, report, build)


def fetch_stocks(market: MarketService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    """Every stock of every status. Merged, not replaced: a stock that was listed once stays."""
    endpoint = market.catalogue.stocks

    def build(_: Request) -> Built:
        lists = {
            (exchange, status): _ask(market, endpoint, exchange=exchange, list_status=status)
            for exchange in EXCHANGES
            for status in LIST_STATUS
        }
        if empty := [exchange for exchange in NEVER_EMPTY if not lists[exchange, "L"].num_rows]:
            raise NotYetData(
                f"{endpoint.endpoint}: no listed stock on {' and '.join(empty)}; not kept",
                reason_code="incomplete",
            )
        frame = pa.concat_tables(lists.values())
        held = market.state(endpoint.name, ALL).version
        if frame.num_rows < held.rows * SHRUNK_BELOW:
            raise NotYetData(
                f"{endpoint.endpoint}: only {frame.num_rows:,} stocks, {held.rows:,} are known; "
                "too few, not kept",
                reason_code="incomplete",
            )
        check_distinct(endpoint, frame, endpoint.endpoint)
        detail = {"status": "complete"}
        return Built(ALL, {endpoint.table.name: frame}, detail=detail, merge=not held.corrupt)

    _fetch(market, endpoint, partitions, this, report, build)


def _calendar_of(market: MarketService, endpoint: Endpoint, exchange: str, year: int) -> pa.Table:
    frame = _ask(market, endpoint, exchange=exchange, start_date=f"{year}0101", end_date=f"{year}1231")
    check_calendar(endpoint, exchange, year, frame, market.clock())
    years = pa.array([year] * frame.num_rows, pa.int32())
    return frame.add_column(0, endpoint.table.schema.field("year"), years)


def _ask(market: MarketService, endpoint: Endpoint, **params: str) -> pa.Table:
    return market.source.fetch(TushareRequest(endpoint.endpoint, params, schema=endpoint.source_schema))


def _fetch(
    market: MarketService,
    endpoint: Endpoint,
    partitions: Sequence[str],
    this: Attempt,
    report: Notify,
    build: Callable[[Request], Built | NotBuilt],
) -> None:
    work = market.fetching(REFRESH, endpoint, this, report)
    try:
        work.run(partitions, lambda requests: one_at_a_time(requests, build))
    finally:
        market.note_source(endpoint, work)
