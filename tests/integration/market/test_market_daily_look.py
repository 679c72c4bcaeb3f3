"""A look at a fresh house fills it; a look at a whole one does nothing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from orchestration.cli.market_demo import show_market
from orchestration.environments import load_settings
from orchestration.health import platform_findings
from resources.tushare.sandbox_process import remember_sandbox
from tests.integration.market.house import AFTER_HOLIDAY, FETCHED, PREPARED, House, expected_rows
from tests.light import heavy_imports


def test_first_look_makes_everything_healthy(empty_house: House) -> None:
    empty_house.set(PERENNIAL_GAP_WINDOW_DAYS="3", PERENNIAL_GAP_LIMIT="1")
    said = empty_house.run("market", "daily")
    assert said.code == 0, said.err
    assert said.out == "2024-09-30 is a trading day and due\n"
    assert empty_house.run("status").out.startswith("healthy")
    for day in ("2024-09-27", "2024-09-30"):
        assert {t: empty_house.rows(t, day) for t in FETCHED} == expected_rows(empty_house.exchange, day)
    assert empty_house.run("check", "market").code == 0


def test_second_look_does_nothing(house: House) -> None:
    content, snapshots, work = house.content(), house.snapshots(), house.work()
    said = house.run("market", "daily")
    assert said.code == 0
    assert house.calls() == 0
    assert (house.content(), house.snapshots(), house.work()) == (content, snapshots, work)


def test_a_look_at_noon_derives_only_what_can_be(house: House) -> None:
    """Factors are published in the morning, prices after the close: noon has nothing to adjust yet."""
    house.set(PERENNIAL_DAILY_AT="12:00")
    house.at(f"{AFTER_HOLIDAY}T12:01")
    with house.instance() as instance:
        ticked = house.tick_schedule(instance, "market_daily_schedule")
    asked = {r.partition_key: {k.path[-1] for k in r.asset_selection} for r in ticked.run_requests}
    assert asked[AFTER_HOLIDAY] == {"normalized_adj_factor", "suspensions", "coverage", "revisions"}

    house.later(minutes=10)  # what that tick asked for never became a run
    said = house.run("market", "heal")
    assert said.code == 0, said.err
    assert house.rows("normalized_adj_factor", AFTER_HOLIDAY)
    assert house.rows("coverage", AFTER_HOLIDAY)
    assert not house.rows("adjusted_daily", AFTER_HOLIDAY)
    assert not [row for row in house.work() if row.reason_code == "input_missing"]

    house.at(f"{AFTER_HOLIDAY}T17:01")
    assert house.run("market", "heal").code == 0
    assert (
        house.rows("adjusted_daily", AFTER_HOLIDAY) == house.rows("normalized_daily", AFTER_HOLIDAY) > 5_000
    )
    assert house.run("check", "market").code == 0


def test_the_demo_can_be_run_again_and_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the same hole is made and healed; other work that comes back so often has to wait."""
    monkeypatch.setattr("orchestration.cli.market_demo.DAYS", len(PREPARED))
    content = house.content()
    for times in range(1, 5):
        assert show_market(load_settings(), shown=False).ok
        assert not platform_findings(load_settings())
        assert house.calls() == house.calls("daily") == times, "only the demo's own gap is fetched"
    assert house.content() == content


def test_the_demo_tells_of_both_domains(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.cli.market_demo.DAYS", len(PREPARED))
    monkeypatch.setattr("orchestration.cli.carbon_demo.SCALE", 0.001)
    said = house.run("demo", "--json")
    assert said.code == 0, said.err
    assert said.json["healthy"]
    assert {row["days"] for row in said.json["tables"]} == {len(PREPARED)}
    assert said.json["carbon"]["recalculated"] == ["electricity", "plane"]


def test_a_look_of_another_source_is_refused(house: House) -> None:
    """Demo prices and real ones never share a lake."""
    house.let_time_run()
    house.set(PERENNIAL_SOURCE="tushare", TUSHARE_TOKEN="0123456789abcdef")
    said = house.run("market", "heal")
    assert said.code == 2
    assert "belongs to source 'sandbox', not 'tushare'" in said.err
    assert "set PERENNIAL_HOME to another folder" in said.err
    assert "0123456789abcdef" not in said.err
    assert house.calls() == 0


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("plan", "market"),
        ("check", "market"),
        ("work", "list"),
        ("sql", "SELECT count(*) FROM market.normalized_daily"),
    ],
    ids=lambda words: words[0],
)
def test_looking_imports_nothing_heavy(house: House, words: tuple[str, ...]) -> None:
    assert heavy_imports(*words) == []


def test_doctor_counts_the_work_of_all_kinds(house: House) -> None:
    counts = house.market.ledger.counts()
    assert len(counts) > 1
    whole = sum(kind.get("completed", 0) for kind in counts.values())
    said = house.run("doctor").out
    assert f"work: {whole:,} completed" in said, said


def test_faults_are_set_in_the_sandbox_that_runs_for_this_home(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an address of a source of one's own."""
    monkeypatch.delenv("TUSHARE_URL")
    remember_sandbox(house.home, house.source.url, os.getpid())
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr("orchestration.cli.sandbox._sandbox", lambda *words: asked.append(words) or 0)
    house.run("sandbox", "faults", "list")
    assert asked == [("faults", "list", "--url", house.source.url)]


def test_reconcile__nothing_is_due__takes_no_write_lock(house: House) -> None:
    with closing(sqlite3.connect(house.home / "ledger.db")) as another:
        another.execute("BEGIN IMMEDIATE")
        assert house.reconcile().starts == ()
