"""Fetching days of one table: what is to be asked for, one pass over it, and the word on how it went.

The caller decides on another pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from domain.market.answer import EARLY
from domain.market.catalogue import Endpoint
from domain.market.completeness import SAYS_SO, Judgement
from domain.market.plan import FILL
from domain.market.trading import TradingCalendar, published_at, shanghai
from domain.shared.error import InvalidInput, PerennialError, TransientResourceError
from domain.shared.table import Version
from services.market.fetch_pass import FetchOutcome, FetchPass
from services.market.passes import CalendarMissing, DayReport, PartlyDone, Pass, Report
from services.market.service import MarketService


def fetch_days(
    market: MarketService, endpoint: Endpoint, days: Sequence[date], this: Pass, report: Report
) -> None:
    """Fetch `days`; every day ends committed, closed, put off in the ledger, or as the error raised."""
    calendar = market.calendar()
    wanted, early = _sort_out(market, endpoint, days, calendar, report)
    if this.only_needed:
        wanted = keep_whole(market, endpoint.name, wanted, report)
    outcome = FetchOutcome()
    try:
        with market.ledger.lease(
            FILL,
            [f"{endpoint.name}:{d}" for d in wanted],
            this.run_id,
            final=this.final,
            retry_in=timedelta(seconds=this.wait),
        ) as lease:
            report(list(_again(market, endpoint, lease.done, this)))
            for key, row in lease.settled.items():
                words = (row.error or row.reason_code).splitlines()[0]
                outcome.settled[_day(key)] = PartlyDone(words, reason_code=row.reason_code)
            todo = sorted(map(_day, lease.keys))
            FetchPass(market, endpoint, this, lease, outcome, report).run(todo)
            if outcome.later:
                raise _final_word(endpoint, outcome.later, this)
    finally:
        _freshness(market, endpoint, outcome, calendar, this)
    if outcome.settled:
        raise _summary(endpoint, outcome.settled, len(days))
    if early:
        raise early


def _day(key: str) -> date:
    return date.fromisoformat(key.split(":", 1)[1])


def _sort_out(
    market: MarketService,
    endpoint: Endpoint,
    days: Sequence[date],
    calendar: TradingCalendar,
    report: Report,
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
    report([DayReport(d, "closed") for d in days if not calendar.is_open(d)])
    for day in filter(calendar.is_open, sorted(days)):
        if published_at(endpoint, day) > now:
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


def keep_whole(market: MarketService, table: str, days: Sequence[date], report: Report) -> list[date]:
    """The days that need work; the others are reported as they are, in the words of their last fetch."""
    needed = market.needed(days, {table})
    states = market.states([table], [str(d) for d in days])
    # What nobody ever recorded is not whole, even where the plan has no opinion on it.
    whole = [d for d in days if d not in needed and states[table, str(d)].recorded is not None]
    versions = market.lake.versions(f"market.{table}", [str(d) for d in whole])
    report(
        [
            DayReport(
                d, "kept", versions[str(d)], _judged(versions[str(d)].rows, states[table, str(d)].detail)
            )
            for d in whole
        ]
    )
    return [d for d in days if d not in set(whole)]


def _again(market: MarketService, endpoint: Endpoint, done: Sequence[str], this: Pass) -> Iterator[DayReport]:
    """What an earlier pass of this very run has committed: told again, not fetched again."""
    records = market.provenance.records([endpoint.table.name], [k.split(":", 1)[1] for k in done])
    for record in records.values():
        detail = record.detail
        version = Version(record.rows, record.digest)
        judgement = _judged(record.rows, detail)
        yield DayReport(
            date.fromisoformat(record.partition),
            "committed",
            version,
            judgement,
            record.snapshot_id,
            detail.get("seconds", 0.0),
            this.retry,
            announced=True,
            explained=judgement.status == "partial" and record.seen_count >= SAYS_SO,
        )


def _judged(rows: int, detail: Mapping[str, Any]) -> Judgement:
    return Judgement(detail["status"], rows, detail.get("expected"), detail.get("ratio"))


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
    market: MarketService, endpoint: Endpoint, outcome: FetchOutcome, calendar: TradingCalendar, this: Pass
) -> None:
    """Tell the source's freshness. Where a day failed, that is the word: some success beside it is none.

    A day that is merely early is no failure: a source some minutes late would be told as broken.
    """
    now = market.clock()
    settled = [error for error in outcome.settled.values() if error.reason_code != EARLY]
    failed = bool(settled or (outcome.later and this.final))
    if outcome.committed and not failed:
        latest = max(outcome.committed)
        today = shanghai(now).date()
        newest = calendar.newest(1, today)
        market.sources.succeeded(
            endpoint.source,
            rows_latest=outcome.committed[latest],
            rows_today=outcome.committed.get(today, 0) if newest and newest[0] == today else None,
            at=now,
        )
    if settled:
        market.sources.failed(endpoint.source, settled[0], at=now)
    elif outcome.later and this.final:
        market.sources.failed(endpoint.source, _final_word(endpoint, outcome.later, this), at=now)
