"""Which days of a run are written at all: the open ones, and of these those that need work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from domain.market.plan import needs_work
from domain.shared.error import TransientResourceError
from domain.shared.state import PartitionState
from domain.shared.table import Table
from services.market.service import MarketService
from services.partitions import Attempt, Notify, PartitionReport


class CalendarMissing(TransientResourceError):
    """Without the calendar it is unknown which days are due; the plan fetches it first."""

    reason_code = "calendar_missing"
    retry_in_run = False


def require_years(market: MarketService, days: Sequence[date]) -> None:
    """Raise unless the trading calendar has the years of these days."""
    if missing := sorted({day.year for day in days} - market.calendar().years):
        years = ", ".join(map(str, missing))
        raise CalendarMissing(
            f"the trading calendar of {years} is missing",
            remedy=f"materialise market/{market.catalogue.calendar.name} for {years}",
        )


def days_to_write(
    market: MarketService, table: Table, partitions: Sequence[str], this: Attempt, report: Notify
) -> list[date]:
    """The days to be written, oldest first; closed ones and those to be kept are reported instead."""
    days = sorted(map(date.fromisoformat, partitions))
    require_years(market, days)
    calendar = market.calendar()
    if not this.retry:
        report([PartitionReport(table, str(d), "closed") for d in days if not calendar.is_open(d)])
    wanted = [d for d in days if calendar.is_open(d)]
    return _without_complete(market, table, wanted, report) if this.only_needed else wanted


def _without_complete(
    market: MarketService, table: Table, days: Sequence[date], report: Notify
) -> list[date]:
    needed: set[str] = set()
    states: dict[tuple[str, str], PartitionState] = {}
    for seen, verdicts in market.judged(days, {table.table}):
        needed |= {v.partition for v in verdicts if v.table == table.table and needs_work(v)}
        states |= seen.states
    # A day that was never recorded is not complete, even where the plan does not judge it.
    kept = [d for d in days if str(d) not in needed and states[table.table, str(d)].recorded is not None]
    report(
        [
            PartitionReport(table, str(d), "kept", state.version, state, detail=state.detail)
            for d in kept
            for state in [states[table.table, str(d)]]
        ]
    )
    return sorted(set(days) - set(kept))
