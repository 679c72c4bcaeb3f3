"""Fetching days of one table: ask, judge, commit by month, record. One pass; the caller decides on another.

The order is what makes it safe to kill at any moment: lake commit, then the record of it, then the work's
end. A commit without its record looks like a foreign hand at the next look and is fetched again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from assets.market.market import Market
from domain.market.answer import NotYetData, check_answer
from domain.market.catalogue import Endpoint
from domain.market.completeness import SAYS_SO, Judgement
from domain.market.observed import Cell
from domain.market.plan import FILL
from domain.market.trading import TradingCalendar, published_at, shanghai
from domain.shared.error import InvalidInput, PerennialError, TransientResourceError
from domain.shared.table import ABSENT, Version
from resources.ledger.provenance import Fact
from resources.tushare.errors import QuotaUsedUp, RateLimited

if TYPE_CHECKING:
    from resources.ledger.client import Hold
    from resources.tushare.request import Request

CODES_PER_CALL = 500
MINUTES_WAITED = 3
"""How often a call of a range is made again after the source refused it for the minute."""
ONLY = "perennial/only"
ONLY_NEEDED = "needed"
"""The run tag, and its value, that set `Pass.only_needed`."""
log = logging.getLogger("perennial.market")
progress = logging.getLogger("perennial.progress")


@dataclass(frozen=True)
class Pass:
    """One pass of a run: the first, or a repetition by the op's retry policy."""

    run_id: str
    retry: int = 0
    waits: Sequence[float] = ()
    only_needed: bool = False
    """Leave alone what is whole: a backfill over days of which some are there."""

    @property
    def final(self) -> bool:
        return self.retry >= len(self.waits)

    @property
    def wait(self) -> float:
        return 0.0 if self.final else self.waits[self.retry]


@dataclass(frozen=True)
class DayReport:
    """What happened to one day, for events and metadata."""

    day: date
    outcome: str
    version: Version = ABSENT
    judgement: Judgement | None = None
    snapshot_id: int | None = None
    seconds: float = 0.0
    retries: int = 0
    announced: bool = False
    """Whether an earlier pass of the same run already logged its event."""
    why: str = ""
    """Of a refused day."""
    explained: bool = False
    """Partial, and the source has said the same before."""


@dataclass
class _Harvest:
    """The answers of one pass, sorted by what they mean."""

    later: dict[date, TransientResourceError] = field(default_factory=dict)
    """Worth another pass within the run."""
    settled: dict[date, PerennialError] = field(default_factory=dict)
    """Put off or given up in the ledger."""
    halt: PerennialError | None = None
    """The source will answer nothing more for now."""
    committed: dict[date, int] = field(default_factory=dict)


def fetch_days(
    market: Market, endpoint: Endpoint, days: Sequence[date], this: Pass, report: Callable[[DayReport], None]
) -> None:
    """Fetch `days`; every day ends committed, closed, put off in the ledger, or as the error raised."""
    calendar = market.calendar()
    wanted, early = _sort_out(market, endpoint, days, calendar, report)
    if this.only_needed:
        wanted = keep_whole(market, endpoint.name, wanted, report)
    harvest = _Harvest()
    try:
        with market.ledger.hold(
            FILL,
            [f"{endpoint.name}:{d}" for d in wanted],
            this.run_id,
            final=this.final,
            retry_in=timedelta(seconds=this.wait),
        ) as hold:
            for told in _again(market, endpoint, hold.done, this):
                report(told)
            for key, row in hold.settled.items():
                words = (row.error or row.reason_code).splitlines()[0]
                harvest.settled[_day(key)] = PartlyDone(words, reason_code=row.reason_code)
            todo = sorted(map(_day, hold.keys))
            _FetchPass(market, endpoint, this, hold, harvest, report).run(todo)
            if harvest.later:
                raise _final_word(endpoint, harvest.later, this)
    finally:
        _freshness(market, endpoint, harvest, calendar, this)
    if harvest.settled:
        raise _summary(endpoint, harvest.settled, len(days))
    if early:
        raise early


class Unforeseen(PerennialError):
    """An exception nobody classified, met while one day was fetched. Few attempts, then a person looks."""

    reason_code = "unclassified"


def _unforeseen(error: Exception) -> Unforeseen:
    wrapped = Unforeseen(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _day(key: str) -> date:
    return date.fromisoformat(key.split(":", 1)[1])


def _sort_out(
    market: Market,
    endpoint: Endpoint,
    days: Sequence[date],
    calendar: TradingCalendar,
    report: Callable[[DayReport], None],
) -> tuple[list[date], InvalidInput | None]:
    """Closed days are reported and done; days not published yet are a person's mistake, told at the end."""
    if unknown := sorted({d.year for d in days if not calendar.knows(d)}):
        years = ", ".join(map(str, unknown))
        raise CalendarMissing(
            f"{endpoint.endpoint}: the trading calendar of {years} is not there",
            remedy=f"materialise market/{market.catalogue.calendar.name} for {years}",
        )
    now = market.clock()
    wanted, early = [], []
    for day in sorted(days):
        if not calendar.is_open(day):
            report(DayReport(day, "closed"))
        elif published_at(endpoint, day) > now:
            early.append(day)
        else:
            wanted.append(day)
    if not early:
        return wanted, None
    hour = published_at(endpoint, early[0])
    return wanted, InvalidInput(
        f"{endpoint.endpoint} {early[0]} is published at {hour:%H:%M} Asia/Shanghai; "
        f"it is {shanghai(now):%Y-%m-%d %H:%M} there",
        reason_code="not_published",
        remedy=f"ask again after {hour:%Y-%m-%d %H:%M} Asia/Shanghai",
    )


def keep_whole(
    market: Market, table: str, days: Sequence[date], report: Callable[[DayReport], None]
) -> list[date]:
    """The days that need work; the others are reported as they are."""
    needed = market.needed(days, {table})
    cells = market.cells([table], [str(d) for d in days])
    # What nobody ever recorded is not whole, even where the plan has no opinion on it.
    whole = [d for d in days if d not in needed and cells[table, str(d)].recorded is not None]
    versions = market.lake.versions(f"market.{table}", [str(d) for d in whole])
    for day in whole:
        report(DayReport(day, "kept", versions[str(day)]))
    return [d for d in days if d not in set(whole)]


class CalendarMissing(TransientResourceError):
    """Without the calendar nobody knows which days are due; the plan fetches it first."""

    reason_code = "calendar_missing"
    retry_in_run = False


class PartlyDone(PerennialError):
    """Some days of a run were put off or given up. The ledger knows each and asks again."""

    reason_code = "partly_done"


def _again(market: Market, endpoint: Endpoint, done: Sequence[str], this: Pass) -> Iterator[DayReport]:
    """What an earlier pass of this very run has committed: told again, not fetched again."""
    facts = market.provenance.facts([endpoint.table.name], [k.split(":", 1)[1] for k in done])
    for fact in facts.values():
        detail = fact.detail
        version = Version(fact.rows, fact.digest)
        judgement = Judgement(detail["status"], fact.rows, detail.get("expected"), detail.get("ratio"))
        yield DayReport(
            date.fromisoformat(fact.partition),
            "committed",
            version,
            judgement,
            fact.snapshot_id,
            detail.get("seconds", 0.0),
            this.retry,
            announced=True,
            explained=judgement.status == "partial" and fact.seen_count >= SAYS_SO,
        )


@dataclass
class _FetchPass:
    market: Market
    endpoint: Endpoint
    this: Pass
    hold: Hold
    harvest: _Harvest
    report: Callable[[DayReport], None]

    def run(self, days: Sequence[date]) -> None:
        """Month after month: while one is committed, the next is already being fetched."""
        months = [list(g) for _, g in groupby(days, key=lambda d: (d.year, d.month))]
        if not months:
            return
        pool = ThreadPoolExecutor(self.market.workers, thread_name_prefix=f"fetch-{self.endpoint.endpoint}")
        try:
            ahead = self._submit(pool, months[0])
            for number, _ in enumerate(months):
                asked = ahead
                ahead = self._submit(pool, months[number + 1]) if number + 1 < len(months) else {}
                self._commit(dict(self._collect(asked)))
                done = len(self.harvest.committed)
                progress.info("%s: %d of %d days committed", self.endpoint.name, done, len(days))
        finally:
            # Interrupted, nobody wants the calls that have not begun; otherwise there are none left.
            pool.shutdown(cancel_futures=True)

    def _submit(self, pool: ThreadPoolExecutor, days: Sequence[date]) -> dict[date, Future[_Answer]]:
        expected = self.market.expected(days) if self.endpoint.expected != "unknown" else {}
        return {
            day: pool.submit(self._fetch, day, expected.get((self.endpoint.name, str(day)))) for day in days
        }

    def _fetch(self, day: date, expected: int | None) -> _Answer:
        if self.harvest.halt is not None:
            raise self.harvest.halt
        began = time.monotonic()
        request = self._request(day)
        frame = self._ask(day, request)
        judgement = check_answer(self.endpoint, day, frame, expected, self.market.clock())
        return _Answer(frame, judgement, time.monotonic() - began)

    def _ask(self, day: date, request: Request) -> pa.Table:
        """One call. In a range, one refused for the minute waits for the next: put off in the ledger, days
        by the hundred would come back as a run each."""
        for patience in reversed(range(MINUTES_WAITED)):
            try:
                return self.market.source.fetch(request, narrow=lambda params: self._narrow(day, params))
            except RateLimited:
                if not patience or len(self.hold.keys) == 1:
                    raise
        raise AssertionError("unreachable")

    def _request(self, day: date) -> Request:
        from resources.tushare.request import Request

        return Request(
            self.endpoint.endpoint, {"trade_date": f"{day:%Y%m%d}"}, schema=self.endpoint.source_schema
        )

    def _narrow(self, day: date, params: Mapping[str, str]) -> list[dict[str, str]]:
        """A page was full: ask for the listed stocks, some hundred codes at a time."""
        if "ts_code" in params:
            return []
        codes = self.market.listed_codes(day)
        return [
            {**params, "ts_code": ",".join(codes[i : i + CODES_PER_CALL])}
            for i in range(0, len(codes), CODES_PER_CALL)
        ]

    def _collect(self, asked: Mapping[date, Future[_Answer]]) -> Iterator[tuple[date, _Answer]]:
        for day, future in asked.items():
            try:
                yield day, future.result()
            except PerennialError as error:
                self._refuse(day, error)
            except Exception as error:
                log.exception("%s %s", self.endpoint.endpoint, day)
                self._refuse(day, _unforeseen(error))

    def _refuse(self, day: date, error: PerennialError) -> None:
        """Sort a failure: another pass of this run, a later run, or a person."""
        key = f"{self.endpoint.name}:{day}"
        if isinstance(error, NotYetData):
            self.report(DayReport(day, "refused", why=error.message))
        if isinstance(error, Unforeseen):
            self.hold.defer(key, error)
            self.harvest.settled[day] = error
        elif not isinstance(error, TransientResourceError):
            self.hold.fail(key, error)
            self.harvest.settled[day] = error
            self.harvest.halt = error
        elif getattr(error, "retry_in_run", True):
            self.harvest.later[day] = error
        else:
            self.hold.defer(key, error)
            self.harvest.settled[day] = error
            if isinstance(error, QuotaUsedUp):
                self.harvest.halt = error

    def _commit(self, answers: Mapping[date, _Answer]) -> None:
        """One commit for all answers of a month, then their records, then the end of their work."""
        if not answers:
            return
        name, partitions = self.endpoint.table.name, [str(d) for d in answers]
        before = self.market.cells([self.endpoint.name], partitions)
        full = {
            d: a
            for d, a in answers.items()
            if a.frame.num_rows or before[self._cell_key(d)].version != ABSENT
        }
        versions: dict[str, Version] = dict.fromkeys(partitions, ABSENT)
        snapshot, parent = None, None
        if full:
            frame = pa.concat_tables([a.frame for a in full.values()])
            commit = self.market.lake.replace_range(
                name,
                [str(d) for d in full],
                frame,
                allow_empty=self.endpoint.may_be_empty,
                guard=self.hold.check,
            )
            versions |= commit.versions
            snapshot, parent = commit.snapshot_id, commit.parent_id
        self._record(answers, before, versions, snapshot, parent)
        for day, answer in answers.items():
            status = answer.judgement.status
            self.hold.complete(
                f"{self.endpoint.name}:{day}", reason_code="" if status == "complete" else status
            )
            version = versions[str(day)]
            self.harvest.committed[day] = version.rows
            self.report(
                DayReport(
                    day,
                    "committed",
                    version,
                    answer.judgement,
                    snapshot,
                    answer.seconds,
                    self.this.retry,
                    explained=_explained(before[self._cell_key(day)], version, answer.judgement),
                )
            )
        # Writes the answers: a killed run must not leave finished work behind as unfinished.
        self.hold.check()

    def _record(
        self,
        answers: Mapping[date, _Answer],
        before: Mapping[tuple[str, str], Cell],
        versions: Mapping[str, Version],
        snapshot: int | None,
        parent: int | None,
    ) -> None:
        """Note what was committed. Content that replaced other content of the source's is a revision."""
        facts: dict[int | None, list[Fact]] = {}
        for day, answer in answers.items():
            cell, version = before[self._cell_key(day)], versions[str(day)]
            fact = Fact(
                table_name=self.endpoint.table.name,
                partition=str(day),
                rows=version.rows,
                digest=version.digest,
                snapshot_id=snapshot,
                detail={
                    "status": answer.judgement.status,
                    "expected": answer.judgement.expected,
                    "ratio": answer.judgement.ratio,
                    "fetches": _fetches(cell, answer.judgement),
                    "seconds": round(answer.seconds, 3),
                },
                run_id=self.this.run_id,
            )
            # The snapshot just before this commit shows the old content, unless some other hand was in the
            # lake since; then only the snapshot that first had it does.
            facts.setdefault(parent if cell.untouched else None, []).append(fact)
        for shows_old, noted in facts.items():
            self.market.provenance.record(noted, revision=True, parent_snapshot_id=shows_old)

    def _cell_key(self, day: date) -> tuple[str, str]:
        return self.endpoint.name, str(day)


def _explained(cell: Cell, version: Version, judgement: Judgement) -> bool:
    again = cell.seen_count + 1 if cell.recorded == version else 1
    return judgement.status == "partial" and again >= SAYS_SO


def _fetches(cell: Cell, judgement: Judgement) -> int:
    """How often in a row the day was fetched and judged so: a day that turns partial is asked again soon."""
    alike = cell.detail.get("status") == judgement.status
    return int(cell.detail.get("fetches", 0)) + 1 if alike else 1


@dataclass(frozen=True)
class _Answer:
    frame: pa.Table
    judgement: Judgement
    seconds: float


def _final_word(
    endpoint: Endpoint, later: Mapping[date, TransientResourceError], this: Pass
) -> TransientResourceError:
    """The error of a pass; after the last pass, the sentence people search for."""
    day, error = next(iter(later.items()))
    days = f"{day}" if len(later) == 1 else f"{len(later)} days from {day}"
    text = f"{endpoint.endpoint} failed after {this.retry} retries: {error.message} ({days})"
    if not this.final:
        text = (
            f"{endpoint.endpoint}: {error.message} ({days}; pass {this.retry + 1}, again in {this.wait:g} s)"
        )
    final = TransientResourceError(text, reason_code=error.reason_code, remedy=error.remedy)
    final.__cause__ = error
    return final


def _summary(endpoint: Endpoint, settled: Mapping[date, PerennialError], asked: int) -> PartlyDone:
    error = next(iter(settled.values()))
    summary = PartlyDone(
        f"{endpoint.endpoint}: {len(settled)} of {asked} days not committed; {error.message}",
        reason_code=error.reason_code,
        remedy=error.remedy,
    )
    summary.__cause__ = error
    return summary


def _freshness(
    market: Market, endpoint: Endpoint, harvest: _Harvest, calendar: TradingCalendar, this: Pass
) -> None:
    """Tell the source's freshness. Where a day failed, that is the word: some success beside it is none."""
    now = market.clock()
    failed = bool(harvest.settled or (harvest.later and this.final))
    if harvest.committed and not failed:
        latest = max(harvest.committed)
        today = shanghai(now).date()
        newest = calendar.newest(1, today)
        market.sources.succeeded(
            endpoint.source,
            rows_latest=harvest.committed[latest],
            rows_today=harvest.committed.get(today, 0) if newest and newest[0] == today else None,
            at=now,
        )
    if harvest.settled:
        market.sources.failed(endpoint.source, next(iter(harvest.settled.values())), at=now)
    elif harvest.later and this.final:
        market.sources.failed(endpoint.source, _final_word(endpoint, harvest.later, this), at=now)
