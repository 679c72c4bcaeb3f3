"""Foreign hands in the lake: each kind of harm is seen, named, and mended from the source."""

from __future__ import annotations

from datetime import date

import pytest

from tests.integration.services.market.market_app import PREPARED, TODAY, MarketApp
from tests.tools.break_lake import main as break_lake

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself

TABLE = "normalized_daily"


def harm(app: MarketApp, *deeds: str, table: str = TABLE) -> None:
    assert break_lake(["--home", str(app.home), "--table", f"market.{table}", *deeds]) == 0


def verdicts(app: MarketApp, table: str = TABLE) -> dict[str, tuple[str, str, str]]:
    """What `plan market` thinks of each day of a table: state, reason and words."""
    rows = app.run("plan", "market", "--json").json["verdicts"]
    return {r["partition"]: (r["state"], r["reason"], r["why"]) for r in rows if r["table"] == table}


def test_dropped_halved_and_falsified_days_are_named_and_healed(app: MarketApp) -> None:
    content, whole = app.content(), app.rows(TABLE, TODAY)
    harm(app, "--drop-day", TODAY, "--drop-half", "2024-09-27", "--corrupt-day", "2024-09-26")
    seen = verdicts(app)
    assert seen[TODAY] == (
        "gap",
        "missing",
        f"its {whole:,} rows are gone, {whole:,} rows expected",
    )
    assert seen["2024-09-27"][:2] == ("gap", "incomplete")
    assert seen["2024-09-27"][2].endswith("(50.0%) are left")
    assert seen["2024-09-26"][:2] == ("gap", "changed")
    assert seen["2024-09-26"][2].startswith("content is not what was fetched (")
    assert {day for day, (state, _, _) in seen.items() if state == "gap"} == {
        TODAY,
        "2024-09-27",
        "2024-09-26",
    }
    assert app.run("check", "market").code == 1

    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.content() == content
    assert app.calls() == app.calls("daily") == 3
    assert app.status() == {}


def test_a_rotten_file_is_named_and_every_day_in_it_fetched_again(app: MarketApp) -> None:
    content = app.content()
    harm(app, "--rot-file", TODAY)
    seen = verdicts(app)
    assert {(state, reason) for state, reason, _ in seen.values()} == {("gap", "damaged")}
    assert set(seen) == set(PREPARED), "a month is one file"
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.content() == content


@pytest.mark.parametrize("table", ["adjusted_daily", "coverage"])
def test_harm_to_what_is_derived_needs_no_source(app: MarketApp, table: str) -> None:
    content = app.content()
    harm(app, "--corrupt-day", TODAY, "--drop-day", "2024-09-27", table=table)
    app.stop_source()
    assert app.run("market", "heal").code == 0
    assert app.content() == content


@pytest.mark.parametrize(
    ("table", "partition"), [("normalized_trade_cal", "2024"), ("normalized_stock_basic", "ALL")]
)
@pytest.mark.parametrize("deed", ["--drop-day", "--rot-file"])
def test_harm_to_a_reference_is_healed_before_the_days(
    app: MarketApp, table: str, partition: str, deed: str
) -> None:
    content = app.content([table])
    harm(app, deed, partition, table=table)
    assert app.run("plan", "market", "--json").json["verdicts"][0]["state"] in ("refresh", "healthy")
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.content([table]) == content
    assert app.status() == {}


def test_six_broken_days_take_two_passes_newest_first(app: MarketApp) -> None:
    for day in PREPARED:
        app.drop(TABLE, day)
    first = app.reconcile()
    assert [start.partitions[0] for start in first.starts] == ["2024-09-30", "2024-09-27", "2024-09-26"]
    assert all(set(start.tables) >= {TABLE, "adjusted_daily", "coverage"} for start in first.starts)
    unfinished = {start.dispatch_id for start in first.starts}
    second = app.reconcile(unfinished)
    assert [start.partitions[0] for start in second.starts] == ["2024-09-25", "2024-09-24", "2024-09-23"]
    unfinished |= {start.dispatch_id for start in second.starts}
    assert app.reconcile(unfinished).starts == ()


def test_the_same_day_dropped_twice_heals_twice(app: MarketApp) -> None:
    content = app.content()
    for generation in range(1, 3):
        app.drop(TABLE, TODAY)
        assert app.run("market", "heal").code == 0
        assert app.content() == content
        assert app.calls("daily") == generation
        app.later(seconds=31)
    assert [row.status for row in app.work(f"{TABLE}:{TODAY}")] == ["completed"] * 3


def test_work_given_up_on_some_days_hides_no_older_day(app: MarketApp) -> None:
    for day in PREPARED:
        app.drop(TABLE, day)
    for day in PREPARED[-3:]:
        app.fault("daily", "no_permission", day=date.fromisoformat(day))
    assert app.run("market", "heal").code == 1
    failed = {row.key for row in app.work(TABLE) if row.status == "failed"}
    assert failed == {f"{TABLE}:{day}" for day in PREPARED[-3:]}
    assert {day for day in PREPARED if app.rows(TABLE, day)} == set(PREPARED[:3])
