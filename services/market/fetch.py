"""Fetching days of one table from the source: ask, judge, hand over to be written month by month."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from itertools import groupby

import pyarrow as pa

from domain.market.answer import NotYetData, check_answer
from domain.market.catalogue import Endpoint
from domain.market.completeness import Judgement
from domain.market.plan import FILL
from domain.market.trading import published_at, shanghai
from domain.shared.error import InvalidInput, PerennialError, TransientResourceError
from domain.shared.state import PartitionState
from resources.tushare.errors import QuotaUsedUp, RateLimited
from resources.tushare.request import TushareRequest
from services.market.days import days_to_write
from services.market.service import MarketService
from services.partitions import Attempt, Batch, Built, NotBuilt, Notify, PartitionReport, Request

CODES_PER_CALL = 500
MINUTES_WAITED = 3
"""How often a call of a range is made again after the source refused it for the minute."""
log = logging.getLogger("perennial.market")


def fetch_days(
    market: MarketService, partitions: Sequence[str], this: Attempt, report: Notify, *, endpoint: Endpoint
) -> None:
    """Fetch days of a table. Each ends committed, closed, deferred in the ledger, or in the error raised."""
    days = days_to_write(market, endpoint.table, partitions, this, report)
    early = [day for day in days if published_at(endpoint, day) > market.clock()]
    due = [str(day) for day in days if day not in early]
    work = market.fetching(FILL, endpoint, this, report)
    try:
        work.run(due, _Fetch(market, endpoint, report, alone=len(due) == 1).batches)
    finally:
        market.note_source(endpoint, work)
    if early:
        raise _not_published(market, endpoint, early[0])


def _not_published(market: MarketService, endpoint: Endpoint, day: date) -> InvalidInput:
    hour = published_at(endpoint, day)
    return InvalidInput(
        f"{endpoint.endpoint} {day} is published at {hour:%H:%M} Asia/Shanghai; "
        f"it is {shanghai(market.clock()):%Y-%m-%d %H:%M} there",
        reason_code="not_published",
        remedy=f"ask again after {hour:%Y-%m-%d %H:%M} Asia/Shanghai",
    )


@dataclass(frozen=True)
class _Answer:
    frame: pa.Table
    judgement: Judgement
    seconds: float


@dataclass
class _Fetch:
    """The calls of one pass. While a month is committed, the next is already being fetched."""

    market: MarketService
    endpoint: Endpoint
    report: Notify
    alone: bool
    halt: PerennialError | None = None
    """The source will answer nothing more for now."""

    def batches(self, requests: Sequence[Request]) -> Generator[Batch, None, None]:
        days = [date.fromisoformat(request.partition) for request in requests]
        months = [list(group) for _, group in groupby(days, key=lambda d: (d.year, d.month))]
        if not months:
            return
        pool = ThreadPoolExecutor(self.market.workers, thread_name_prefix=f"fetch-{self.endpoint.endpoint}")
        try:
            ahead = self._submit(pool, months[0])
            for number, month in enumerate(months):
                asked = ahead
                ahead = self._submit(pool, months[number + 1]) if number + 1 < len(months) else {}
                before = self.market.states([self.endpoint.name], [str(d) for d in month])
                yield [
                    self._built(day, future, before[self.endpoint.name, str(day)])
                    for day, future in asked.items()
                ]
        finally:
            # After an interrupt, calls that have not begun are not made; otherwise there are none left.
            pool.shutdown(cancel_futures=True)

    def _submit(self, pool: ThreadPoolExecutor, days: Sequence[date]) -> dict[date, Future[_Answer]]:
        expected = self.market.expected(days) if self.endpoint.expected != "unknown" else {}
        return {
            day: pool.submit(self._fetch, day, expected.get((self.endpoint.name, str(day)))) for day in days
        }

    def _fetch(self, day: date, expected: int | None) -> _Answer:
        if self.halt is not None:
            raise self.halt
        began = time.monotonic()
        frame = self._ask(day)
        judgement = check_answer(self.endpoint, day, frame, expected, self.market.clock())
        return _Answer(frame, judgement, time.monotonic() - began)

    def _ask(self, day: date) -> pa.Table:
        """One call. In a range, one refused for the minute waits for the next: deferred in the ledger, days
        by the hundred would come back as a run each."""
        params = {"trade_date": f"{day:%Y%m%d}"}
        call = TushareRequest(self.endpoint.endpoint, params, schema=self.endpoint.source_schema)
        for patience in reversed(range(MINUTES_WAITED)):
            try:
                return self.market.source.fetch(call, narrow=lambda: self._narrow(day, params))
            except RateLimited:
                if not patience or self.alone:
                    raise
        raise AssertionError("unreachable")

    def _narrow(self, day: date, params: Mapping[str, str]) -> list[dict[str, str]]:
        """A page was full: ask for the listed stocks, some hundred codes at a time."""
        codes = self.market.listed_codes(day)
        return [
            {**params, "ts_code": ",".join(codes[i : i + CODES_PER_CALL])}
            for i in range(0, len(codes), CODES_PER_CALL)
        ]

    def _built(self, day: date, future: Future[_Answer], before: PartitionState) -> Built | NotBuilt:
        try:
            answer = future.result()
        except NotYetData as error:
            self.report([PartitionReport(self.endpoint.table, str(day), "refused", reason=error.message)])
            return NotBuilt(str(day), error)
        except PerennialError as error:
            if isinstance(error, QuotaUsedUp) or not isinstance(error, TransientResourceError):
                self.halt = error
            return NotBuilt(str(day), error)
        except Exception as error:
            log.exception("%s %s", self.endpoint.endpoint, day)
            return NotBuilt(str(day), error)
        status = answer.judgement.status
        as_before = before.detail.get("status") == status
        return Built(
            str(day),
            {self.endpoint.table.name: answer.frame},
            detail={
                "status": status,
                "expected": answer.judgement.expected,
                "ratio": answer.judgement.ratio,
                # How often in a row it was judged so: a day that turns partial is asked again soon.
                "fetches": (before.detail.get("fetches", 0) if as_before else 0) + 1,
            },
            reason_code="" if status == "complete" else status,
            seconds=answer.seconds,
        )
