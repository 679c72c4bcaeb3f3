"""Coverage: per day and table how much is there, stock by stock, against plain sets."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.catalogue import Catalogue
from domain.market.reckoning import coverage
from domain.market.tables import COVERAGE
from domain.shared.state import PartitionState
from tests.unit.domain.market.frames import CODES, FIRST, PRESENT, Exchange, arrow, exchanges
from tests.unit.domain.market.world import CATALOGUE, DAILY, JUDGED, content, corrupt, shanghai_time, state

NOW = shanghai_time("2026-11-17 20:00")
Held = dict[tuple[str, date], set[str]]


def coverage_rows(
    exchange: Exchange,
    held: Held,
    states: dict[tuple[str, str], PartitionState] | None = None,
    catalogue: Catalogue = CATALOGUE,
) -> dict[tuple[str, date], dict[str, object]]:
    present = [
        {"table_name": t, "trade_date": d, "ts_code": c}
        for (t, d), codes in held.items()
        for c in sorted(codes)
    ]
    table = coverage(
        catalogue,
        exchange.days,
        {
            **{(t, str(d)): state(len(codes), NOW) for (t, d), codes in held.items()},
            **(states or {}),
        },
        {
            (t, str(d)): len(exchange.wanted(CATALOGUE.by_name(t).expected, d))
            for t in JUDGED
            for d in exchange.days
        },
        exchange.stock_table,
        exchange.suspension_table,
        arrow(present, PRESENT),
    )
    assert table.schema == COVERAGE.schema
    return {(row["table_name"], row["trade_date"]): row for row in table.to_pylist()}


@st.composite
def holdings(draw: st.DrawFn, exchange: Exchange) -> Held:
    codes = st.sets(st.sampled_from([*CODES, "888888.BJ"]))
    return {(t, d): draw(codes) for t in JUDGED for d in exchange.days if draw(st.booleans())}


@given(exchanges(), st.data())
@settings(max_examples=12, deadline=None)
def test_coverage__any_holdings__counts_missing_and_unexpected_stocks(
    exchange: Exchange, data: st.DataObject
) -> None:
    held = data.draw(holdings(exchange))
    rows = coverage_rows(exchange, held)
    assert set(rows) == {(t, d) for t in DAILY for d in exchange.days}, "one row per day and table"
    for (table, day), row in rows.items():
        if table not in JUDGED:
            continue
        wanted, there = exchange.wanted(CATALOGUE.by_name(table).expected, day), held.get((table, day), set())
        assert (row["rows"], row["expected"]) == (len(there), len(wanted))
        assert (row["missing_stocks"] or 0, row["unexpected_stocks"] or 0) == (
            len(wanted - there),
            len(there - wanted),
        )
        assert (row["missing_sample"] or "") == " ".join(sorted(wanted - there)[:10])
        assert row["digest"] == content(len(there)).digest


TEN = Exchange(
    [FIRST], [{"ts_code": f"{n:06}.SZ", "list_date": FIRST, "delist_date": None} for n in range(100)], []
)
EVERY = {s["ts_code"] for s in TEN.stocks}
PRICES = ("normalized_daily", FIRST)


def status(rows: int, seen: int = 1) -> object:
    held = {PRICES: set(sorted(EVERY)[:rows])}
    states = {(PRICES[0], str(FIRST)): state(rows, NOW, seen=seen)}
    return coverage_rows(TEN, held, states)[PRICES]["status"]


def test_coverage__number_of_rows__decides_the_status() -> None:
    assert [status(rows) for rows in (100, 99, 98, 90, 89, 0)] == [
        "complete", "complete", "partial", "partial", "incomplete", "missing",
    ]  # fmt: skip
    assert status(98, seen=2) == "explained"


def test_coverage__many_stocks_missing__names_the_first() -> None:
    row = coverage_rows(TEN, {PRICES: set()})[PRICES]
    assert row["missing_stocks"] == 100
    assert row["missing_sample"] == " ".join(sorted(EVERY)[:10])


def test_coverage__corrupt_day__has_no_rows_and_every_stock_missing() -> None:
    row = coverage_rows(TEN, {}, {(PRICES[0], str(FIRST)): corrupt(state(100, NOW))})[PRICES]
    assert (row["status"], row["rows"], row["missing_stocks"]) == ("corrupt", 0, 100)


def test_coverage__table_may_be_empty__says_that_it_was_asked() -> None:
    place = ("suspensions", FIRST)
    assert coverage_rows(TEN, {})[place]["status"] == "missing"
    asked = coverage_rows(TEN, {}, {("suspensions", str(FIRST)): state(0, NOW)})[place]
    assert (asked["status"], asked["rows"], asked["expected"], asked["ratio"]) == ("asked", 0, None, None)
    assert asked["missing_stocks"] is None


def test_coverage__below_the_floor__has_floor_and_ratio() -> None:
    by_floor = replace(CATALOGUE.by_name("suspensions"), may_be_empty=False, floor=4_000)
    catalogue = replace(CATALOGUE, daily=(*CATALOGUE.daily[:3], by_floor))
    states = {("suspensions", str(FIRST)): state(1_000, NOW)}
    row = coverage_rows(TEN, {}, states, catalogue)["suspensions", FIRST]
    assert (row["status"], row["expected"], row["ratio"]) == ("incomplete", 4_000, 0.25)
