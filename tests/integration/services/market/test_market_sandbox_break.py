"""`perennial sandbox break`: days of the sandbox are broken, of a real source never."""

from __future__ import annotations

import pytest

from tests.integration.services.market.market_app import TODAY, MarketApp


def states(app: MarketApp, table: str) -> dict[str, str]:
    rows = app.run("plan", "market", "--json").json["verdicts"]
    return {r["partition"]: r["state"] for r in rows if r["table"] == table}


@pytest.mark.parametrize(
    ("how", "state", "done"),
    [
        ("--drop-day", "missing", "rows dropped"),
        ("--drop-half", "incomplete", "rows kept"),
        ("--corrupt-day", "changed", "rows falsified"),
        ("--rot-file", "corrupt", "1 data file(s) cut short"),
    ],
)
def test_break__newest_day__is_what_the_plan_then_says(
    app: MarketApp, how: str, state: str, done: str
) -> None:
    said = app.run("sandbox", "break", how)
    assert said.code == 0, said.err
    assert said.out.startswith(f"market.normalized_daily {TODAY}: ")
    assert said.out.rstrip().endswith(done)
    assert f"says {state}" in said.err
    assert "perennial market heal" in said.err
    assert states(app, "normalized_daily")[TODAY] == state


def test_break__table_without_namespace_and_two_days__breaks_both(app: MarketApp) -> None:
    said = app.run("sandbox", "break", "--drop-day", "--table", "suspensions", "2024-09-25", "2024-09-26")
    assert said.code == 0, said.err
    seen = states(app, "suspensions")
    assert {day for day, state in seen.items() if state == "missing"} == {"2024-09-25", "2024-09-26"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one way at a time"),
        (("--drop-day", "--drop-half"), "one way at a time"),
        (("--drop-day", "last Monday"), "'last Monday' is no partition of market.normalized_daily"),
        (("--drop-day", "2024-09-28"), "no rows of 2024-09-28"),
        (("--drop-day", "--table", "normalised_daily"), "did you mean normalized_daily?"),
        (("--drop-day", "--table", "carbon.data_entries"), "may be broken, not carbon.data_entries"),
    ],
)
def test_break__wrong_usage__breaks_nothing(app: MarketApp, arguments: tuple[str, ...], message: str) -> None:
    content = app.content()
    said = app.run("sandbox", "break", *arguments)
    assert said.code == 2
    assert message in said.err
    assert app.content() == content


def test_break__source_is_real__is_refused(app: MarketApp) -> None:
    content = app.content()
    app.set(PERENNIAL_SOURCE="tushare", TUSHARE_TOKEN="0123456789abcdef")
    app._patch.delenv("PERENNIAL_NOW")
    said = app.run("sandbox", "break", "--drop-day")
    assert said.code == 2
    assert "only a lake that is filled from the sandbox may be broken" in said.err
    app.set(PERENNIAL_SOURCE="sandbox", TUSHARE_TOKEN="")
    assert app.content() == content


def test_break__home_filled_from_a_real_source__is_refused_on_sandbox_settings(app: MarketApp) -> None:
    content, engine = app.content(), app.market.ledger.engine
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE setting SET value = 'tushare' WHERE value = 'sandbox'")
    said = app.run("sandbox", "break", "--drop-day")
    assert said.code == 2, said.err
    assert "belongs to source 'tushare'" in said.err
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE setting SET value = 'sandbox' WHERE value = 'tushare'")
    assert app.content() == content
