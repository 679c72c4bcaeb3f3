"""The gaps of the whole history: reported here, and backfilled on request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from domain.market.derived import ADJUSTED_FROM
from domain.market.observed import Observed
from domain.market.plan import REFRESH, is_gap, window
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, HISTORY_GAPS, REVISIONS
from domain.shared.verdict import UNAVAILABLE, Verdict
from services.market.days import require_years
from services.market.service import MarketService
from services.partitions import Attempt, Built, Notify, Request, one_at_a_time


def write_history_gaps(
    market: MarketService, partitions: Sequence[str], this: Attempt, report: Notify
) -> None:
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
    """The gaps of the older days, but of days with a running fill: half done, they would look changed."""
    busy = market.busy_days([e.name for e in market.catalogue.daily])
    days = [day for day in _older_days(market) if day not in busy]
    found = [_gap(seen, v) for seen, verdicts in market.judged(days) for v in verdicts if _is_gap(v)]
    found.sort(key=lambda row: (row["trade_date"], row["table_name"]), reverse=True)
    return pa.Table.from_pylist(found, schema=HISTORY_GAPS.schema)


def _older_days(market: MarketService) -> list[date]:
    """The open days from the first there ever was up to the gap window."""
    calendar = market.calendar()
    near = window(Observed(calendar, {}), market.clock(), market.rules)
    had = market.days_had()
    if not had or not near:
        return []
    require_years(market, [date.fromisoformat(p) for p in had])
    return [d for d in calendar.between(date.fromisoformat(min(had)), near[0]) if d < near[0]]


def _is_gap(verdict: Verdict) -> bool:
    """Whether a person has to know of it. Coverage that is merely out of date follows from another gap of its
    day, or from a stock list that has grown since; revisions heal by themselves at any age."""
    if verdict.table == REVISIONS.table:
        return False
    if verdict.table == COVERAGE.table and verdict.reason_code == "inputs_changed":
        return False
    return is_gap(verdict) or verdict.reason_code == UNAVAILABLE


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
