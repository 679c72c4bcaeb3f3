"""Damage to the lake from outside: each kind is named, and repaired from the source."""

from __future__ import annotations

import pytest

from tests.breaking import break_lake
from tests.integration.services.market.market_app import PREPARED, TODAY, MarketApp

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself

TABLE = "normalized_daily"


def harm(app: MarketApp, *deeds: str, table: str = TABLE) -> None:
    break_lake(app.home, f"market.{table}", *deeds)


def verdicts(app: MarketApp, table: str = TABLE) -> dict[str, tuple[str, str, str]]:
    """The verdicts of `plan market` on the days of a table: state, reason code and reason."""
    rows = app.run("plan", "market", "--json").json["verdicts"]
    return {r["partition"]: (r["state"], r["reason_code"], r["reason"]) for r in rows if r["table"] == table}


def test_heal__days_dropped_halved_and_falsified__names_and_restores_them(app: MarketApp) -> None:
    content, whole = app.content(), app.rows(TABLE, TODAY)
    harm(app, "--drop-day", TODAY, "--drop-half", "2024-09-27", "--corrupt-day", "2024-09-26")
    seen = verdicts(app)
    assert seen[TODAY] == (
        "missing",
        "missing",
        f"its {whole:,} rows are gone, {whole:,} rows expected",
    )
    assert seen["2024-09-27"][:2] == ("incomplete", "incomplete")
    assert seen["2024-09-27"][2].endswith("(50.0%) are left")
    assert seen["2024-09-26"][:2] == ("changed", "changed")
    assert {day for day, (state, _, _) in seen.items() if state != "healthy"} == {
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


def test_heal__file_corrupt__fetches_every_day_in_it_again(app: MarketApp) -> None:
    content = app.content()
    harm(app, "--rot-file", TODAY)
    seen = verdicts(app)
    assert {(state, reason) for state, reason, _ in seen.values()} == {("corrupt", "corrupt")}
    assert set(seen) == set(PREPARED), "a month is one file"
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.content() == content


def test_heal__derived_days_harmed__needs_no_source(app: MarketApp) -> None:
    content = app.content()
    harm(app, "--corrupt-day", TODAY, table="adjusted_daily")
    harm(app, "--drop-day", "2024-09-27", table="coverage")
    app.stop_source()
    assert app.run("market", "heal").code == 0
    assert app.content() == content


@pytest.mark.parametrize(
    ("table", "partition", "deed"),
    [("normalized_trade_cal", "2024", "--rot-file"), ("normalized_stock_basic", "ALL", "--drop-day")],
)
def test_heal__reference_harmed__restores_it_first(
    app: MarketApp, table: str, partition: str, deed: str
) -> None:
    content = app.content([table])
    harm(app, deed, partition, table=table)
    assert verdicts(app, table)[partition][0] == {"--drop-day": "missing", "--rot-file": "corrupt"}[deed]
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.content([table]) == content
    assert app.status() == {}


def test_reconcile__six_days_missing__sends_three_per_pass_newest_first(app: MarketApp) -> None:
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
