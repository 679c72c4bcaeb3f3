"""Calculations on market tables: expected rows, adjusted prices, coverage, revisions.

Set-based: every function takes Arrow tables of any number of days and gives one Arrow table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from string import Template
from typing import Any

import pyarrow as pa

from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import judge
from domain.market.derived import coverage_status
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.shared.compute import query
from domain.shared.packaged import packaged
from domain.shared.state import PartitionState


def _days(days: Sequence[date]) -> pa.Table:
    """Made by DuckDB: Arrow would import pandas for it, which takes a fifth of a second."""
    return query("SELECT unnest($days::DATE[]) AS trade_date", {}, {"days": list(days)})


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
    states: Mapping[tuple[str, str], PartitionState],
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
    by_table_day = {(row["table_name"], row["trade_date"]): row for row in compared.to_pylist()}
    rows = [
        _coverage_row(
            e,
            day,
            states.get((e.name, str(day)), PartitionState()),
            expected.get((e.name, str(day))),
            by_table_day,
        )
        for day in days
        for e in catalogue.daily
    ]
    return pa.Table.from_pylist(rows, schema=COVERAGE.schema)


def _coverage_row(
    endpoint: Endpoint,
    day: date,
    state: PartitionState,
    expected: int | None,
    compared: Mapping[tuple[str, date], Mapping[str, Any]],
) -> dict[str, Any]:
    judgement = judge(endpoint, state.version.rows, expected)
    stocks = compared.get((endpoint.name, day), {})
    return {
        "trade_date": day,
        "table_name": endpoint.name,
        "rows": state.version.rows,
        "expected": judgement.expected,
        "ratio": judgement.ratio,
        "missing_stocks": stocks.get("missing_stocks"),
        "unexpected_stocks": stocks.get("unexpected_stocks"),
        "missing_sample": stocks.get("missing_sample"),
        "status": coverage_status(endpoint, state, expected),
        "digest": state.version.digest,
    }


def revisions(endpoint: Endpoint, day: date, seen: datetime, old: pa.Table, new: pa.Table) -> pa.Table:
    """Return the rows of `endpoint` that differ between two versions of a day."""
    key = [k for k in endpoint.table.key if k != "trade_date"]
    others = [k for k in key if k != "ts_code"]
    values = [c.name for c in endpoint.table.columns if c.name not in endpoint.table.key]
    sql = Template(packaged(__file__, "revisions")).substitute(
        # Always true; a table keyed by its day alone has nothing else to join by.
        joined=" AND ".join(["o.here = n.here", *(f'o."{k}" IS NOT DISTINCT FROM n."{k}"' for k in key)]),
        pairs=", ".join(f"{{'c': '{v}', 'o': to_json(o.\"{v}\"), 'n': to_json(n.\"{v}\")}}" for v in values),
        ts_code=_either("ts_code") if "ts_code" in key else "''",
        row_key=" || ' ' || ".join(_either(k) for k in others) or "''",
    )
    answer = query(sql, {"old_rows": old, "new_rows": new}, [day, endpoint.name, seen])
    return answer.cast(REVISIONS.schema)


def lost_revision(endpoint: Endpoint, day: date, seen: datetime) -> pa.Table:
    """Return the row for a change whose old or new rows cannot be read any more."""
    row = {"trade_date": day, "table_name": endpoint.name, "ts_code": "", "row_key": "", "seen": seen}
    return pa.Table.from_pylist([row | {"change": "lost"}], schema=REVISIONS.schema)


def _either(column: str) -> str:
    """SQL: the column's value on whichever side has the row, as text."""
    return f'coalesce(CAST(o."{column}" AS VARCHAR), CAST(n."{column}" AS VARCHAR), \'\')'
