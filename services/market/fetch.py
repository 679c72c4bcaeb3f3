"""Fetching days of one table from the source: ask, judge, hand over to be written month by month."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from domain.market.answer import (
    NotYetData,
    ThinnerAnswer,
    TooEarly,
    check_answer,
    refuse_thinner,
    stock_list_missing,
)
from domain.market.catalogue import Endpoint
from domain.market.completeness import Judgement, is_settled
from domain.market.plan import FILL
from domain.market.trading import published_at, shanghai
from domain.shared.error import InvalidInput, PerennialError
from domain.shared.state import PartitionState
from resources.tushare.errors import BadAnswer
from resources.tushare.request import TushareRequest
from services.market.asking import Caller
from services.market.days import days_to_write
from services.market.service import MarketService
from services.materialize import progress
from services.partitions import Attempt, Batch, Built, NotBuilt, Notify, PartitionReport, Request

CODES_PER_CALL = 500
AGREEING, AGREEING_EMPTY, MOST_ASKED = 2, 3, 5
"""How often the same answer must come where nothing says how many rows there are; and after how many calls a
pass gives up."""
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
        # A single day of a sensor's run is put off instead: the slot is free meanwhile.
        call = Caller(market.source, patient=this.only_needed or len(due) > 1)
        work.run(due, _Fetch(market, endpoint, this, report, call).batches)
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


def calls_for(endpoint: Endpoint, days: Iterable[date]) -> int:
    """How many calls these days take, if each is answered well at once."""
    found = list(days)
    return len({(d.year, d.month) for d in found}) * AGREEING if endpoint.may_be_empty else len(found)


@dataclass(frozen=True)
class _Answer:
    frame: pa.Table
    judgement: Judgement
    seconds: float


Coming = Callable[[], _Answer]
"""Waits for the answer of a day; raises why there is none."""


def _each_day(first: date, last: date) -> list[dict[str, str]]:
    days = (first + timedelta(n) for n in range((last - first).days + 1))
    return [{"trade_date": f"{day:%Y%m%d}"} for day in days]


@dataclass
class _Fetch:
    """The calls of one pass. While a month is committed, the next is already being fetched."""

    market: MarketService
    endpoint: Endpoint
    this: Attempt
    report: Notify
    call: Caller

    def batches(self, requests: Sequence[Request]) -> Generator[Batch, None, None]:
        asked_for = {r.partition for r in requests if not r.optional}
        days = [date.fromisoformat(request.partition) for request in requests]
        months = [list(group) for _, group in groupby(days, key=lambda d: (d.year, d.month))]
        if not months:
            return
        if self.endpoint.expected != "unknown" and not self.market.stocks().num_rows:
            # Asked for now, the answers could not be judged, and would be thrown away.
            yield [NotBuilt(str(d), stock_list_missing(f"{self.endpoint.endpoint} {d}")) for d in days]
            return
        answered = 0
        pool = ThreadPoolExecutor(self.market.workers, thread_name_prefix=f"fetch-{self.endpoint.endpoint}")
        try:
            ahead = self._submit(pool, months[0])
            for number, month in enumerate(months):
                asked = ahead
                ahead = self._submit(pool, months[number + 1]) if number + 1 < len(months) else {}
                before = self.market.states([self.endpoint.name], [str(d) for d in month])
                built = []
                for day, coming in asked.items():
                    known = before[self.endpoint.name, str(day)]
                    built.append(self._built(day, coming, known, asked=str(day) in asked_for))
                    answered += 1
                    if len(days) > 1:
                        progress.info("%s: %d of %d days answered", self.endpoint.name, answered, len(days))
                yield built
        finally:
            # After an interrupt, calls that have not begun are not made; otherwise there are none left.
            pool.shutdown(cancel_futures=True)

    def _submit(self, pool: ThreadPoolExecutor, days: Sequence[date]) -> dict[date, Coming]:
        expected = self.market.expected(days) if self.endpoint.expected != "unknown" else {}
        counts = {day: expected.get((self.endpoint.name, str(day))) for day in days}
        if not self.endpoint.may_be_empty:
            return {day: pool.submit(self._of_day, day, count).result for day, count in counts.items()}
        together = pool.submit(self._of_days, days)
        return {day: partial(self._part, together, day, count) for day, count in counts.items()}

    def _of_day(self, day: date, expected: int | None) -> _Answer:
        began = time.monotonic()
        params = {"trade_date": f"{day:%Y%m%d}"}
        frame = self.call(self._request(params), lambda: self._narrow(day, params))
        return self._judged(day, frame, expected, time.monotonic() - began)

    def _of_days(self, days: Sequence[date]) -> tuple[pa.Table, float]:
        """The rows of several days, which nothing says the number of: believed when the same answer comes
        again, and none had more rows. In one call for all days, as there are few rows."""
        began = time.monotonic()
        first, last = f"{days[0]:%Y%m%d}", f"{days[-1]:%Y%m%d}"
        request = self._request({"start_date": first, "end_date": last})
        best, times = request.schema.empty_table(), 0
        for _ in range(MOST_ASKED):
            frame = self.call(request, lambda: _each_day(days[0], days[-1]))
            frame = frame.sort_by([(name, "ascending") for name in frame.column_names])
            if frame.equals(best):
                times += 1
            elif frame.num_rows >= best.num_rows:
                best, times = frame, 1
            if times == (AGREEING if best.num_rows else AGREEING_EMPTY):
                return self._within(days, best), (time.monotonic() - began) / len(days)
        raise BadAnswer(f"{request.api_name} {days[0]} to {days[-1]}: another answer each time")

    def _within(self, days: Sequence[date], frame: pa.Table) -> pa.Table:
        seen = pc.min_max(frame["trade_date"]).as_py()
        if frame.num_rows and not days[0] <= seen["min"] <= seen["max"] <= days[-1]:
            what = f"{self.endpoint.endpoint} {days[0]} to {days[-1]}"
            raise BadAnswer(f"{what}: rows of other days, from {seen['min']} to {seen['max']}")
        return frame

    def _part(self, together: Future[tuple[pa.Table, float]], day: date, expected: int | None) -> _Answer:
        frame, seconds = together.result()
        return self._judged(day, frame.filter(pc.equal(frame["trade_date"], day)), expected, seconds)

    def _judged(self, day: date, frame: pa.Table, expected: int | None, seconds: float) -> _Answer:
        judgement = check_answer(self.endpoint, day, frame, expected, self.market.clock())
        return _Answer(frame, judgement, seconds)

    def _request(self, params: Mapping[str, str]) -> TushareRequest:
        return TushareRequest(self.endpoint.endpoint, params, schema=self.endpoint.source_schema)

    def _narrow(self, day: date, params: Mapping[str, str]) -> list[dict[str, str]]:
        """A page was full: ask for the listed stocks, some hundred codes at a time."""
        codes = self.market.listed_codes(day)
        return [
            {**params, "ts_code": ",".join(codes[i : i + CODES_PER_CALL])}
            for i in range(0, len(codes), CODES_PER_CALL)
        ]

    def _built(self, day: date, coming: Coming, before: PartitionState, *, asked: bool) -> Built | NotBuilt:
        """Return the day's next content. `asked`: by a person; no later run repeats it."""
        try:
            answer = coming()
            # A plan's answer that is whole is a revision; a part of a day that was whole is none yet.
            keep = asked or (answer.judgement.status == "partial" and is_settled(before))
            if keep and not self.this.accept_thinner:
                refuse_thinner(self.endpoint, day, answer.frame.num_rows, before)
        except ThinnerAnswer as error:
            kept = PartitionReport(
                self.endpoint.table, str(day), "kept", before.version, before, detail=before.detail
            )
            self.report([kept])
            if asked:
                return NotBuilt(str(day), error, skip=error.reason_code)
            later = TooEarly(error.message, reason_code=error.reason_code, remedy=error.remedy)
            return NotBuilt(str(day), later)
        except NotYetData as error:
            if self.this.final or not error.retry_in_run:
                self.report([PartitionReport(self.endpoint.table, str(day), "refused", reason=error.message)])
            return NotBuilt(str(day), error)
        except PerennialError as error:
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
