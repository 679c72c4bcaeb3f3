"""A pass at a fresh home fills it; a pass at a whole one does nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from resources.sandbox.process import port_file
from tests.integration.services.market.market_app import (
    AFTER_HOLIDAY,
    FETCHED,
    PREPARED,
    MarketApp,
    expected_rows,
)
from tests.light import heavy_imports


def test_daily__empty_home__makes_everything_healthy(empty_app: MarketApp) -> None:
    empty_app.set(PERENNIAL_GAP_WINDOW_DAYS="3", PERENNIAL_GAP_LIMIT="1")
    said = empty_app.run("market", "daily")
    assert said.code == 0, said.err
    assert said.out == "2024-09-30 is a trading day and due\n"
    assert empty_app.run("status").out.startswith("healthy")
    for day in ("2024-09-27", "2024-09-30"):
        assert {t: empty_app.rows(t, day) for t in FETCHED} == expected_rows(empty_app.exchange, day)
    assert empty_app.run("check", "market").code == 0


def test_daily__all_healthy__does_nothing(app: MarketApp) -> None:
    content, snapshots, work = app.content(), app.snapshots(), app.work()
    said = app.run("market", "daily")
    assert said.code == 0
    assert app.calls() == 0
    assert (app.content(), app.snapshots(), app.work()) == (content, snapshots, work)


def test_heal__at_noon__derives_only_what_can_be(app: MarketApp) -> None:
    """Factors are published in the morning, prices after the close: noon has nothing to adjust yet."""
    app.set(PERENNIAL_DAILY_AT="12:00")
    app.at(f"{AFTER_HOLIDAY}T12:01")
    with app.instance() as instance:
        ticked = app.tick_schedule(instance, "market_daily_schedule")
    asked = {r.partition_key: {k.path[-1] for k in r.asset_selection} for r in ticked.run_requests}
    assert asked[AFTER_HOLIDAY] == {"normalized_adj_factor", "suspensions", "coverage", "revisions"}

    app.later(minutes=10)  # what that tick asked for never became a run
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.rows("normalized_adj_factor", AFTER_HOLIDAY)
    assert app.rows("coverage", AFTER_HOLIDAY)
    assert not app.rows("adjusted_daily", AFTER_HOLIDAY)
    assert not [row for row in app.work() if row.reason_code == "input_missing"]

    app.at(f"{AFTER_HOLIDAY}T17:01")
    assert app.run("market", "heal").code == 0
    assert app.rows("adjusted_daily", AFTER_HOLIDAY) == app.rows("normalized_daily", AFTER_HOLIDAY) > 5_000
    assert app.run("check", "market").code == 0


def test_demo__run_twice__makes_and_fills_its_gap_each_time(
    app: MarketApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.cli.market_demo.DAYS", len(PREPARED))
    app.set(PERENNIAL_DOMAINS="market")
    content = app.content()
    for times in (1, 2):
        said = app.run("demo", "--json")
        assert (said.code, said.json["healthy"]) == (0, True), said.err
        assert {row["days"] for row in said.json["tables"]} == {len(PREPARED)}
        assert app.calls() == app.calls("daily") == times, "only the demo's own gap is fetched"
    assert app.content() == content


def test_readers__all_healthy__import_nothing_heavy(app: MarketApp) -> None:
    query = "SELECT count(*) FROM market.normalized_daily"
    commands = [["status"], ["plan", "market"], ["check", "market"], ["work", "list"], ["sql", query]]
    assert heavy_imports(*commands) == []
    assert heavy_imports(["sql", query], heavy=("sqlalchemy",)) == [], "it names no table of the ledger"


def test_heal__another_source__is_refused(app: MarketApp) -> None:
    """Demo prices and real ones never share a lake."""
    app.let_time_run()
    app.set(PERENNIAL_SOURCE="tushare", TUSHARE_TOKEN="0123456789abcdef")
    said = app.run("market", "heal")
    assert said.code == 2
    assert "belongs to source 'sandbox', not 'tushare'" in said.err
    assert "set PERENNIAL_HOME to another folder" in said.err
    assert "0123456789abcdef" not in said.err
    assert app.calls() == 0


def test_doctor__all_healthy__counts_the_work_of_all_kinds(app: MarketApp) -> None:
    counts = app.market.ledger.counts()
    assert len(counts) > 1
    whole = sum(kind.get("completed", 0) for kind in counts.values())
    said = app.run("doctor").out
    assert f"work: {whole:,} completed" in said, said


def test_sandbox_faults__own_sandbox__are_set_there(app: MarketApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address of a source of one's own."""
    monkeypatch.delenv("TUSHARE_URL")
    port_file(app.home).parent.mkdir()
    port_file(app.home).write_text(app.source.url.rpartition(":")[2])
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr("orchestration.cli.sandbox._sandbox", lambda *words: asked.append(words) or 0)
    app.run("sandbox", "faults", "list")
    assert asked == [("faults", "list", "--url", app.source.url)]


def test_reconcile__nothing_is_due__takes_no_write_lock(app: MarketApp) -> None:
    with closing(sqlite3.connect(app.home / "ledger.db")) as another:
        another.execute("BEGIN IMMEDIATE")
        assert app.reconcile().starts == ()
