"""Revisions: what the source says now against what it said before, row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.catalogue import Endpoint, parse
from domain.market.reckoning import revisions
from domain.market.tables import REVISIONS
from tests.unit.domain.market.frames import CODES, FIRST, PRICES, arrow
from tests.unit.domain.market.world import CATALOGUE

SEEN = datetime(2026, 11, 18, 10, 31, 5, 123456, tzinfo=UTC)
DAILY = CATALOGUE.by_name("normalized_daily")
SUSPENSIONS = CATALOGUE.by_name("suspensions")
VALUES = tuple(c.name for c in DAILY.table.columns if c.name not in DAILY.table.key)

Rows = list[dict[str, Any]]


def price_row(code: str, **values: float | None) -> dict[str, Any]:
    return {"trade_date": FIRST, "ts_code": code, **dict.fromkeys(VALUES, 1.0), **values}


def revision_rows(endpoint: Endpoint, old: Rows, new: Rows) -> Rows:
    schema = endpoint.table.schema
    table = revisions(endpoint, FIRST, SEEN, arrow(old, schema), arrow(new, schema))
    assert table.schema == REVISIONS.schema
    rows: Rows = table.to_pylist()
    for row in rows:
        row["old"], row["new"] = (
            None if row[side] is None else json.loads(row[side]) for side in ("old", "new")
        )
    return rows


def by_hand(old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]) -> Rows:
    found = []
    for code in sorted({*old, *new}):
        was, now = old.get(code), new.get(code)
        differs = [v for v in VALUES if was is None or now is None or was[v] != now[v]]
        if not differs:
            continue
        found.append(
            {
                "trade_date": FIRST,
                "table_name": "normalized_daily",
                "ts_code": code,
                "row_key": "",
                "seen": SEEN,
                "change": "added" if was is None else "removed" if now is None else "changed",
                "old": {v: was[v] for v in differs} if was else None,
                "new": {v: now[v] for v in differs} if now else None,
            }
        )
    return found


CONTENTS = st.dictionaries(
    st.sampled_from(CODES),
    st.fixed_dictionaries({name: st.sampled_from([None, 1.0, 2.5]) | PRICES for name in VALUES}),
)


@given(CONTENTS, CONTENTS)
@settings(max_examples=12, deadline=None)
def test_revisions__any_two_contents__are_those_found_row_by_row(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    # Some rows stay: else nearly everything differs.
    new = {code: old[code] if code in old and n % 2 else row for n, (code, row) in enumerate(new.items())}
    rows = [[price_row(code, **values) for code, values in side.items()] for side in (old, new)]
    assert revision_rows(DAILY, *rows) == by_hand(old, new)


def test_revisions__smallest_difference__is_kept_exactly() -> None:
    [row] = revision_rows(
        DAILY, [price_row("600000.SH", close=0.1 + 0.2)], [price_row("600000.SH", close=0.3)]
    )
    assert (row["old"], row["new"]) == ({"close": 0.1 + 0.2}, {"close": 0.3})


def suspended(timing: str | None, kind: str) -> dict[str, Any]:
    return {"trade_date": FIRST, "ts_code": "600000.SH", "suspend_timing": timing, "suspend_type": kind}


def test_revisions__key_column_null__joins_with_itself() -> None:
    [row] = revision_rows(
        SUSPENSIONS,
        [suspended(None, "S"), suspended("09:30-10:00", "S")],
        [suspended(None, "R"), suspended("09:30-10:00", "S")],
    )
    assert (row["row_key"], row["change"], row["old"], row["new"]) == (
        "", "changed", {"suspend_type": "S"}, {"suspend_type": "R"},
    )  # fmt: skip


def test_revisions__further_key_column__separates_rows_of_a_stock() -> None:
    rows = revision_rows(SUSPENSIONS, [], [suspended(None, "S"), suspended("09:30-10:00", "S")])
    assert [(r["ts_code"], r["row_key"]) for r in rows] == [("600000.SH", ""), ("600000.SH", "09:30-10:00")]


# Any table the catalogue may name


def endpoint(columns: str, key: str) -> Endpoint:
    about = 'title: T, description: D, published: "16:00", points: 1'
    reference = f'{about}, key: [a], columns: {{a: [date, "", A]}}'
    text = f"""
daily:
  - {{endpoint: e, table: t, {about}, key: {key}, columns: {columns}}}
reference:
  - {{endpoint: trade_cal, table: c, {reference}}}
  - {{endpoint: stock_basic, table: s, {reference}}}
"""
    return parse(text).by_name("t")


DAY, CODE = 'trade_date: ["date!", "", D]', 'ts_code: ["string!", "", C]'


@pytest.mark.parametrize(
    ("kind", "old", "new", "shown"),
    [
        ("date", date(2026, 1, 2), None, "2026-01-02"),
        ("string", 'a "word"\n', "b", 'a "word"\n'),
        ("bool", True, False, True),
        ("int64", 2**53 + 1, 1, 2**53 + 1),
        ("float64", 1e-300, 0.0, 1e-300),
    ],
)
def test_revisions__values_of_every_type__come_back(
    kind: str, old: object, new: object, shown: object
) -> None:
    table = endpoint(f'{{{DAY}, {CODE}, value: [{kind}, "", V]}}', "[trade_date, ts_code]")
    key = {"trade_date": FIRST, "ts_code": "600000.SH"}
    [row] = revision_rows(table, [{**key, "value": old}], [{**key, "value": new}])
    assert row["old"] == {"value": shown}
