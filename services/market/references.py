"""Fetching the references: the trading calendar of a year, the list of all stocks.

Each is made of many calls. What was answered is kept until all have been (`asking.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from domain.market.answer import NotYetData, check_calendar, check_distinct
from domain.market.catalogue import Endpoint
from domain.market.plan import REFRESH
from domain.market.trading import OPENED, shanghai
from domain.shared.table import ALL
from resources.tushare.errors import BadAnswer
from resources.tushare.request import TushareRequest
from services.market.asking import Caller
from services.market.service import MarketService
from services.partitions import Attempt, Built, NotBuilt, Notify, Request, one_at_a_time

EXCHANGES = tuple(OPENED)
NEVER_EMPTY = ("SSE", "SZSE")
"""Exchanges that always list a stock."""
LIST_STATUS = ("L", "D", "P", "G")
SHRUNK_BELOW = 0.90


def fetch_calendar(market: MarketService, years: Sequence[str], this: Attempt, report: Notify) -> None:
    """All days of a year of all exchanges; a year that is not announced whole is not data yet."""
    endpoint, call = market.catalogue.calendar, Caller(market.source)

    def ask(request: TushareRequest) -> pa.Table:
        frame = call(request)
        check_calendar(
            endpoint, request.params["exchange"], int(request.params["start_date"][:4]), frame, market.clock()
        )
        return frame

    def build(request: Request) -> Built:
        year, what = int(request.partition), f"{endpoint.endpoint}-{request.partition}"
        span = {"start_date": f"{year}0101", "end_date": f"{year}1231"}
        calls = {name: _call(endpoint, exchange=name, **span) for name in EXCHANGES}
        answers = market.answers.collect(what, calls, shanghai(market.clock()).date(), ask)
        market.answers.forget(what)
        frame = pa.concat_tables(answers[name] for name in EXCHANGES)
        if not frame.num_rows:
            raise NotYetData(
                f"{endpoint.endpoint} {year}: no day of any exchange; the first opened in "
                f"{min(OPENED.values()).year}",
                reason_code="incomplete",
            )
        years = pa.array([year] * frame.num_rows, pa.int32())
        frame = frame.add_column(0, endpoint.table.schema.field("year"), years)
        return Built(request.partition, {endpoint.table.name: frame}, detail={"status": "complete"})

    _fetch(market, endpoint, years, this, report, build)


def fetch_stocks(market: MarketService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    """Every stock of every status. Merged, not replaced: a stock that was listed once stays."""
    endpoint, call = market.catalogue.stocks, Caller(market.source)

    def build(_: Request) -> Built:
        lists = _stock_lists(market, endpoint, call)
        if empty := [e for e in NEVER_EMPTY if not lists[_named(e, "L")].num_rows]:
            raise NotYetData(
                f"{endpoint.endpoint}: no listed stock on {' and '.join(empty)}; not kept",
                reason_code="incomplete",
            )
        frame = pa.concat_tables(lists[_named(e, s)] for e in EXCHANGES for s in LIST_STATUS)
        others = pa.concat_tables(lists[status] for status in LIST_STATUS)
        frame = pa.concat_tables([frame, _beside(others, frame)])
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


def _stock_lists(market: MarketService, endpoint: Endpoint, call: Caller) -> dict[str, pa.Table]:
    """The lists of every exchange and status, and of every status over all exchanges.

    Nothing says how many stocks there must be, so each is asked for in two ways. Where they differ the
    thinner answer is asked for once more, and believed if it comes again.
    """
    what, day = endpoint.endpoint, shanghai(market.clock()).date()
    by_exchange = {
        _named(e, s): _call(endpoint, exchange=e, list_status=s) for e in EXCHANGES for s in LIST_STATUS
    }
    calls = {**by_exchange, **{s: _call(endpoint, list_status=s) for s in LIST_STATUS}}

    def ask(request: TushareRequest) -> pa.Table:
        status = request.params["list_status"]
        parts = [by_exchange[_named(e, status)].params for e in EXCHANGES]
        return call(request, None if "exchange" in request.params else lambda: parts)

    lists = market.answers.collect(what, calls, day, ask)
    if thin := _thin(lists):
        market.answers.keep(what, {n: f for n, f in lists.items() if n not in thin}, day)
        again = market.answers.collect(what, calls, day, ask)
        if other := sorted(n for n in _thin(again) if n not in thin or not _same(again[n], lists[n])):
            market.answers.keep(what, {n: f for n, f in again.items() if n not in other}, day)
            raise BadAnswer(f"{what}: the answers to {' and '.join(other)} lack stocks that others have")
        lists = again
    market.answers.forget(what)
    return lists


def _thin(lists: Mapping[str, pa.Table]) -> set[str]:
    """The names of the lists that lack stocks which the other way to ask for them has."""
    thin: set[str] = set()
    for status in LIST_STATUS:
        whole, parts = lists[status], pa.concat_tables(lists[_named(e, status)] for e in EXCHANGES)
        if _beside(parts, whole).num_rows:
            thin.add(status)
        lost = set(_beside(whole, parts)["exchange"].to_pylist())
        thin |= {_named(e, status) for e in (lost if lost <= set(EXCHANGES) else EXCHANGES)}
    return thin


def _beside(frame: pa.Table, other: pa.Table) -> pa.Table:
    """The stocks of a list that the other has not."""
    return frame.filter(pc.invert(pc.is_in(frame["ts_code"], value_set=other["ts_code"].combine_chunks())))


def _same(one: pa.Table, other: pa.Table) -> bool:
    return not _beside(one, other).num_rows and not _beside(other, one).num_rows


def _named(exchange: str, status: str) -> str:
    return f"{exchange}-{status}"


def _call(endpoint: Endpoint, **params: str) -> TushareRequest:
    return TushareRequest(endpoint.endpoint, params, schema=endpoint.source_schema)


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
