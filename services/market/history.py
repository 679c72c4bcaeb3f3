"""The gaps of the whole history: reported here, and backfilled on request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from domain.market.catalogue import Catalogue
from domain.market.completeness import SAYS_SO
from domain.market.derived import ADJUSTED_FROM
from domain.market.observed import Observed
from domain.market.plan import REFRESH, Verdict, window
from domain.market.reckoning import history_gaps
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, HISTORY_GAPS, REVISIONS
from domain.shared.state import UNAVAILABLE
from resources.lake.error import DataCorrupt
from services.market.days import require_years
from services.market.service import MarketService
from services.partitions import Built, Pass, Report, Request, one_at_a_time


def write_history_gaps(market: MarketService, partitions: Sequence[str], this: Pass, report: Report) -> None:
    """Write the gaps between the first day there ever was and the gap window."""

    def build(request: Request) -> Built:
        gaps = find_gaps(market)
        metadata = {
            "days": len(set(gaps["trade_date"].to_pylist())),
            "command": "perennial market backfill --gaps",
        }
        return Built(request.partition, {HISTORY_GAPS.name: gaps}, metadata=metadata)

    work = market.materialization(REFRESH, HISTORY_GAPS, this, report)
    work.run(partitions, lambda requests: one_at_a_time(requests, build))


def find_gaps(market: MarketService) -> pa.Table:
    # What a live run is at is told by its work; looked at in the middle of it, all would seem wrong.
    busy = market.busy_days([e.name for e in market.catalogue.daily])
    days = [day for day in _older_days(market) if day not in busy]
    counted: list[dict[str, object]] = []
    wrong: dict[tuple[date, str], dict[str, object]] = {}
    for seen, verdicts in market.judged(days):
        counted += _counted(market.catalogue, seen)
        for verdict in filter(_is_gap, verdicts):
            row = _gap(seen, verdict)
            wrong[row["trade_date"], verdict.table] = row
    thin = history_gaps(
        market.catalogue,
        days,
        pa.Table.from_pylist(counted, schema=_COUNTED),
        market.stocks(),
        _all_suspensions(market),
        _explained(market),
    )
    told = {(row["trade_date"], row["table_name"]): row for row in thin.to_pylist()}
    # A day may be thin because its file is damaged: then that is the reason to tell.
    told |= {place: {**row, **told.get(place, {}), "reason": row["reason"]} for place, row in wrong.items()}
    return pa.Table.from_pylist([told[p] for p in sorted(told, reverse=True)], schema=HISTORY_GAPS.schema)


def _older_days(market: MarketService) -> list[date]:
    """The open days from the first there ever was up to the gap window."""
    calendar = market.calendar()
    near = window(Observed(calendar, {}), market.clock(), market.rules)
    had = market.days_had()
    if not had or not near:
        return []
    require_years(market, [date.fromisoformat(p) for p in had])
    return [d for d in calendar.between(date.fromisoformat(min(had)), near[0]) if d < near[0]]


_COUNTED = pa.schema([("table_name", pa.string()), ("trade_date", pa.date32()), ("n", pa.int64())])


def _counted(catalogue: Catalogue, seen: Observed) -> list[dict[str, object]]:
    """Rows per day and fetched table; what cannot be read counts as having none."""
    fetched = {e.name for e in catalogue.daily}
    return [
        {"table_name": table, "trade_date": date.fromisoformat(partition), "n": state.version.rows}
        for (table, partition), state in seen.states.items()
        if table in fetched
    ]


def _is_gap(verdict: Verdict) -> bool:
    """The plan's own judgement of what is lost, damaged, changed by another hand or made from what is gone.

    Coverage that is merely out of date follows from another gap of its day, or from a stock list that has
    grown since; and revisions heal by themselves at any age.
    """
    if verdict.table == REVISIONS.table:
        return False
    if verdict.table == COVERAGE.table and verdict.reason_code == "inputs_changed":
        return False
    return verdict.state in ("gap", "derive") or verdict.reason_code == UNAVAILABLE


def _gap(seen: Observed, verdict: Verdict) -> dict[str, Any]:
    table, partition = verdict.table, verdict.partition
    expected = seen.expected.get((table, partition))
    if table == ADJUSTED_DAILY.table:
        expected = seen.state(ADJUSTED_FROM[0], partition).version.rows
    return {
        "trade_date": date.fromisoformat(partition),
        "table_name": table,
        "rows": seen.state(table, partition).version.rows,
        "expected": expected,
        "reason": verdict.reason_code,
    }


def _all_suspensions(market: MarketService) -> pa.Table:
    """Those readable; a day whose suspensions are damaged is judged against everybody listed."""
    query = (
        "SELECT trade_date, ts_code, suspend_timing, suspend_type FROM market.suspensions "
        "WHERE suspend_type = 'S' AND suspend_timing IS NULL"
    )
    try:
        return market.lake.query(query)
    except DataCorrupt:
        held = market.lake.versions("market.suspensions", market.lake.partitions("market.suspensions"))
        rest = [p for p, version in held.items() if version.readable]
        return market.lake.query(query, partitions={"market.suspensions": rest})


def _explained(market: MarketService) -> list[tuple[str, date]]:
    """Days whose thinness the source has confirmed, and days where an empty answer was an answer."""
    records = market.provenance.records([e.table.name for e in market.catalogue.daily])
    empty = {e.table.name for e in market.catalogue.daily if e.may_be_empty}
    return [
        (name.split(".", 1)[1], date.fromisoformat(partition))
        for (name, partition), record in records.items()
        if (record.seen_count >= SAYS_SO and record.detail.get("status") == "partial")
        or (name in empty and record.rows == 0)
    ]
