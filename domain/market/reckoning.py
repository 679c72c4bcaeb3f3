"""What is computed from market tables: expectations, adjusted prices, coverage, revisions.

Set-based: every function takes Arrow tables of any number of days and gives one Arrow table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from string import Template
from typing import Any

import pyarrow as pa

from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import REFUSED_BELOW, judge
from domain.market.derived import coverage_status
from domain.market.observed import Cell
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, HISTORY_GAPS, REVISIONS
from domain.shared.compute import packaged, query

STOCK_COLUMNS = ("ts_code", "list_date", "delist_date")
SUSPENSION_COLUMNS = ("trade_date", "ts_code", "suspend_timing", "suspend_type")


def _days(days: Sequence[date]) -> pa.Table:
    return pa.table({"trade_date": pa.array(list(days), pa.date32())})


def expected_rows(
    days: Sequence[date], stocks: pa.Table, suspensions: pa.Table
) -> dict[date, dict[str, int]]:
    """Per day the number of stocks `listed` and `listed_less_suspended`."""
    if not days:
        return {}
    answer = query(
        packaged(__file__, "expected"), {"days": _days(days), "stocks": stocks, "suspensions": suspensions}
    )
    return {row.pop("trade_date"): row for row in answer.to_pylist()}


def adjusted_daily(daily: pa.Table, factors: pa.Table) -> pa.Table:
    frame = query(packaged(__file__, "adjusted_daily"), {"daily": daily, "factors": factors})
    return frame.cast(ADJUSTED_DAILY.schema)


def coverage(
    catalogue: Catalogue,
    days: Sequence[date],
    cells: Mapping[tuple[str, str], Cell],
    expected: Mapping[tuple[str, str], int | None],
    stocks: pa.Table,
    suspensions: pa.Table,
    present: pa.Table,
) -> pa.Table:
    """The coverage rows of `days`: one per day and daily table. `present` lists the stocks each has."""
    judged = [e for e in catalogue.daily if e.expected != "unknown"]
    compared = query(
        packaged(__file__, "coverage"),
        {
            "days": _days(days),
            "stocks": stocks,
            "suspensions": suspensions,
            "present": present,
            "judged": pa.table(
                {"table_name": [e.name for e in judged], "reference": [e.expected for e in judged]}
            ),
        },
    )
    by_cell = {(row["table_name"], row["trade_date"]): row for row in compared.to_pylist()}
    rows = [
        _coverage_row(
            e, day, cells.get((e.name, str(day)), Cell()), expected.get((e.name, str(day))), by_cell
        )
        for day in days
        for e in catalogue.daily
    ]
    return pa.Table.from_pylist(rows, schema=COVERAGE.schema)


def _coverage_row(
    endpoint: Endpoint,
    day: date,
    cell: Cell,
    expected: int | None,
    compared: Mapping[tuple[str, date], Mapping[str, Any]],
) -> dict[str, Any]:
    judgement = judge(endpoint, cell.version.rows, expected)
    stocks = compared.get((endpoint.name, day), {})
    return {
        "trade_date": day,
        "table_name": endpoint.name,
        "rows": cell.version.rows,
        "expected": judgement.expected if endpoint.expected != "unknown" else None,
        "ratio": judgement.ratio,
        "missing_stocks": stocks.get("missing_stocks"),
        "unexpected_stocks": stocks.get("unexpected_stocks"),
        "missing_sample": stocks.get("missing_sample"),
        "status": coverage_status(endpoint, cell, expected),
        "digest": cell.version.digest,
    }


def revisions(endpoint: Endpoint, day: date, seen: datetime, old: pa.Table, new: pa.Table) -> pa.Table:
    """The rows of `endpoint` that differ between two beliefs about one day."""
    key = [k for k in endpoint.table.key if k != "trade_date"]
    others = [k for k in key if k != "ts_code"]
    values = [c.name for c in endpoint.table.columns if c.name not in endpoint.table.key]
    joined = " AND ".join(f'o."{k}" IS NOT DISTINCT FROM n."{k}"' for k in key)
    pairs = ", ".join(f"{{'c': '{v}', 'o': to_json(o.\"{v}\"), 'n': to_json(n.\"{v}\")}}" for v in values)
    row_key = " || ' ' || ".join(f'coalesce(o."{k}", n."{k}", \'\')' for k in others) or "''"
    sql = Template(packaged(__file__, "revisions")).substitute(pairs=pairs, joined=joined, row_key=row_key)
    answer = query(sql, {"old_rows": old, "new_rows": new}, [day, endpoint.name, seen])
    return answer.cast(REVISIONS.schema)


def history_gaps(
    catalogue: Catalogue,
    days: Sequence[date],
    counted: pa.Table,
    stocks: pa.Table,
    suspensions: pa.Table,
    explained: Sequence[tuple[str, date]],
) -> pa.Table:
    """Which of `days` have too few rows, per table; `counted` holds the rows each day has."""
    relations = {
        "days": _days(days),
        "counted": counted,
        "wanted": query(
            packaged(__file__, "expected"),
            {"days": _days(days), "stocks": stocks, "suspensions": suspensions},
        ),
        "judged": pa.table(
            {
                "table_name": [e.name for e in catalogue.daily],
                "reference": [e.expected for e in catalogue.daily],
            }
        ),
        "explained": pa.table(
            {
                "table_name": pa.array([t for t, _ in explained], pa.string()),
                "trade_date": pa.array([d for _, d in explained], pa.date32()),
            }
        ),
    }
    return query(packaged(__file__, "history"), relations, [REFUSED_BELOW]).cast(HISTORY_GAPS.schema)
