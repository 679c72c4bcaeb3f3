"""The weekly search of the whole history, and the nightly maintenance of the lake."""

from __future__ import annotations

from datetime import date

import dagster as dg
import pyarrow as pa
import pytest

from domain.market.plan import FILL
from services.market.history import find_gaps
from tests.breaking import break_lake
from tests.integration.services.market.market_app import PREPARED, MarketApp, quiet

OLD = PREPARED[1]


def moved_to(rows: pa.Table, day: str) -> pa.Table:
    column = rows.column_names.index("trade_date")
    days = pa.array([date.fromisoformat(day)] * rows.num_rows, pa.date32())
    return rows.set_column(column, "trade_date", days)


def test_backfill__gaps_outside_the_window__fills_what_is_reported(app: MarketApp) -> None:
    content = app.content()
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    app.drop("normalized_daily", OLD)
    app.drop("suspensions", PREPARED[2])
    assert app.run("market", "heal").code == 1, "two days are gone, and a person has to ask for them"
    assert app.calls() == 0, "they are outside the window that heals itself"
    assert {s: f["reason_code"] for s, f in app.status().items()} == {
        "normalized_daily": "history_lost",
        "suspensions": "history_lost",
    }

    looked = app.run("market", "look-back", "--json")
    assert looked.code == 0
    assert [(g["trade_date"], g["table_name"], g["reason"]) for g in looked.json["gaps"]] == [
        (PREPARED[2], "suspensions", "missing"),
        (OLD, "normalized_daily", "missing"),
    ]
    finding = app.status()["history"]
    assert (finding["health"], finding["action"]) == ("stale", "run `perennial market backfill --gaps`")

    filled = app.run("market", "backfill", "--gaps")
    assert filled.code == 0, filled.err
    assert (app.calls("daily"), app.calls("suspend_d"), app.calls()) == (1, 2, 3)
    assert app.status() == {}
    assert app.run("market", "look-back").out == "no older gaps\n"
    assert app.content() == content


@pytest.fixture
def narrow(app: MarketApp) -> MarketApp:
    """Only the newest day is in the gap window."""
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    return app


def harm(app: MarketApp, table: str, *deeds: str) -> None:
    break_lake(app.home, f"market.{table}", *deeds)


def look_back(app: MarketApp) -> set[tuple[str, str, str]]:
    rows = find_gaps(app.market).to_pylist()
    return {(str(row["trade_date"]), row["table_name"], row["reason"]) for row in rows}


@pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself
def test_backfill__old_days_corrupt_or_changed__restores_what_look_back_finds(narrow: MarketApp) -> None:
    content = narrow.content()
    harm(narrow, "normalized_daily", "--corrupt-day", OLD)
    harm(narrow, "adjusted_daily", "--rot-file", OLD)
    harm(narrow, "coverage", "--corrupt-day", PREPARED[0])
    with narrow.market.ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            "DELETE FROM partition_record WHERE table_name = 'market.normalized_adj_factor'"
            f" AND partition = '{PREPARED[2]}'"
        )
    found = {
        (OLD, "normalized_daily", "changed"),
        # A month is one file; adjusted days whose inputs are gaps too wait for them.
        *((PREPARED[n], "adjusted_daily", "corrupt") for n in (0, 3, 4)),
        (PREPARED[0], "coverage", "changed"),
        (PREPARED[2], "normalized_adj_factor", "unrecorded"),
    }
    looked = narrow.run("market", "look-back", "--json").json["gaps"]
    assert {(g["trade_date"], g["table_name"], g["reason"]) for g in looked} == found
    assert narrow.status()["history"]["reason"].startswith("5 older days")

    assert narrow.run("market", "backfill", "--gaps").code == 0
    assert (narrow.calls("daily"), narrow.calls("adj_factor"), narrow.calls()) == (1, 1, 2)
    assert narrow.run("market", "heal").code == 0
    assert narrow.content() == content
    assert narrow.status() == {}


@pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself
def test_look_back__a_run_has_leased_the_day__leaves_it_to_the_run(narrow: MarketApp) -> None:
    """Between its commit and its record, a day looks as if it had been changed from outside."""
    thin = PREPARED[2]
    harm(narrow, "normalized_daily", "--corrupt-day", OLD, "--drop-day", thin)
    keys = [f"normalized_daily:{day}" for day in (OLD, thin)]
    with narrow.market.ledger.lease(FILL, keys, "a run") as lease:
        assert lease.keys
        assert look_back(narrow) == set()
        for key in keys:
            lease.skip(key, "over")
    found = {one for one in look_back(narrow) if one[1] == "normalized_daily"}
    assert found == {(OLD, "normalized_daily", "changed"), (thin, "normalized_daily", "missing")}


def maintain(app: MarketApp) -> dg.ExecuteInProcessResult:
    with app.instance() as instance, quiet():
        job = app.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey(["ops", "lake_maintenance"])]
        )


def test_maintenance__healthy_lake__changes_no_content(app: MarketApp) -> None:
    content = app.content()
    ended = maintain(app)
    assert ended.success
    reported = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert "market.normalized_daily" in str(reported["tables"].value)
    assert "skipped_files" not in reported
    assert app.content() == content
    assert app.status() == {}
