"""Fetching the references: the trading calendar of a year, the list of all stocks. No Dagster here."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, timedelta

import pyarrow as pa

from domain.market.answer import NOT_ANNOUNCED, NotYetData, check_calendar, check_distinct
from domain.market.catalogue import Endpoint
from domain.market.completeness import Judgement
from domain.market.plan import REFRESH
from domain.market.trading import OPENED, shanghai
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.table import ALL, Version
from resources.lake.client import Commit
from resources.ledger.provenance import PartitionRecord
from services.market.passes import DayReport, Pass
from services.market.service import MarketService

EXCHANGES = tuple(OPENED)
NEVER_EMPTY = ("SSE", "SZSE")
"""Exchanges that always list somebody; what else a list may lack, only the one before can tell."""
Tell = Callable[[DayReport], None]
"""Called after the commit and before its record, as everywhere: see `fetch_pass`."""
LIST_STATUS = ("L", "D", "P", "G")
SHRUNK_BELOW = 0.90


def fetch_calendar(market: MarketService, year: int, this: Pass, tell: Tell) -> DayReport:
    """All days of a year of all exchanges; a year that is not announced whole is not data yet."""
    endpoint = market.catalogue.calendar

    def ask() -> pa.Table:
        frame = pa.concat_tables(_calendar_of(market, endpoint, exchange, year) for exchange in EXCHANGES)
        if not frame.num_rows:
            raise NotYetData(
                f"{endpoint.endpoint} {year}: no day of any exchange; the first opened in "
                f"{min(OPENED.values()).year}",
                reason_code="incomplete",
            )
        return frame

    def commit(frame: pa.Table, guard: Callable[[], None]) -> Commit:
        return market.lake.replace(endpoint.table.name, str(year), frame, guard=guard)

    return _fetch(market, endpoint, str(year), this, ask, commit, tell)


def fetch_stocks(market: MarketService, this: Pass, tell: Tell) -> DayReport:
    """Every stock of every status. Merged, not replaced: whoever was listed once stays."""
    endpoint = market.catalogue.stocks

    def ask() -> pa.Table:
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
        held = market.state(endpoint.name, ALL).version.rows
        if frame.num_rows == 0 or frame.num_rows < held * SHRUNK_BELOW:
            raise NotYetData(
                f"{endpoint.endpoint}: only {frame.num_rows:,} stocks, {held:,} are known; too few, not kept",
                reason_code="incomplete",
            )
        check_distinct(endpoint, frame, endpoint.endpoint)
        return frame

    def commit(frame: pa.Table, guard: Callable[[], None]) -> Commit:
        if market.state(endpoint.name, ALL).version.corrupt:
            return market.lake.replace(endpoint.table.name, ALL, frame, guard=guard)
        return market.lake.merge(endpoint.table.name, frame, guard=guard)

    return _fetch(market, endpoint, ALL, this, ask, commit, tell)


def _calendar_of(market: MarketService, endpoint: Endpoint, exchange: str, year: int) -> pa.Table:
    frame = _ask(market, endpoint, exchange=exchange, start_date=f"{year}0101", end_date=f"{year}1231")
    check_calendar(endpoint, exchange, year, frame, market.clock())
    years = pa.array([year] * frame.num_rows, pa.int32())
    return frame.add_column(0, endpoint.table.schema.field("year"), years)


def _ask(market: MarketService, endpoint: Endpoint, **params: str) -> pa.Table:
    from resources.tushare.request import Request

    request = Request(endpoint.endpoint, params, schema=endpoint.source_schema)
    return market.source.fetch(request)


def _fetch(
    market: MarketService,
    endpoint: Endpoint,
    partition: str,
    this: Pass,
    ask: Callable[[], pa.Table],
    commit: Callable[[pa.Table, Callable[[], None]], Commit],
    tell: Tell,
) -> DayReport:
    key = f"{endpoint.name}:{partition}"
    began = time.monotonic()
    with market.ledger.lease(
        REFRESH, [key], this.run_id, final=this.final, retry_in=timedelta(seconds=this.wait)
    ) as lease:
        if key not in lease.keys:
            return DayReport(shanghai(market.clock()).date(), "held_elsewhere")
        committed = commit(_asked(market, endpoint, ask, this), lease.check)
        version = committed.versions.get(partition) or market.lake.version(endpoint.table.name, partition)
        seconds = time.monotonic() - began
        judgement = Judgement("complete", version.rows, None, None)
        report = DayReport(
            date.min, "committed", version, judgement, committed.snapshot_id, seconds, this.retry
        )
        tell(report)
        _record(market, endpoint, partition, this, version, committed, seconds)
        lease.complete(key)
    return report


def _asked(market: MarketService, endpoint: Endpoint, ask: Callable[[], pa.Table], this: Pass) -> pa.Table:
    """The answer. A failure that ends the run is the source's, and said in the words people search for."""
    try:
        return ask()
    except PerennialError as error:
        in_run = isinstance(error, TransientResourceError) and error.retry_in_run
        if in_run and not this.final:
            raise
        last = error
        if in_run:
            words = f"{endpoint.endpoint} failed after {this.retry} retries: {error.message}"
            last = TransientResourceError(words, reason_code=error.reason_code, remedy=error.remedy)
        if error.reason_code != NOT_ANNOUNCED:  # the source is well; the year is early
            market.sources.failed(endpoint.source, last, at=market.clock())
        if last is error:
            raise
        raise last from error


def _record(
    market: MarketService,
    endpoint: Endpoint,
    partition: str,
    this: Pass,
    version: Version,
    commit: Commit,
    seconds: float,
) -> None:
    market.provenance.record(
        [
            PartitionRecord(
                table_name=endpoint.table.name,
                partition=partition,
                rows=version.rows,
                digest=version.digest,
                snapshot_id=commit.snapshot_id,
                detail={"status": "complete", "seconds": round(seconds, 3)},
                run_id=this.run_id,
            )
        ]
    )
    market.sources.succeeded(endpoint.source, rows_latest=version.rows, rows_today=None)
