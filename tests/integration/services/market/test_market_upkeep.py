"""What happens once a week and every night: the look over the whole history, and the care of the lake."""

from __future__ import annotations

from datetime import date

import dagster as dg
import pyarrow as pa
import pytest

from domain.market.plan import FILL
from tests.integration.services.market.market_app import PREPARED, MarketApp, quiet
from tests.tools.break_lake import main as break_lake

OLD = PREPARED[1]


def moved_to(rows: pa.Table, day: str) -> pa.Table:
    place = rows.column_names.index("trade_date")
    days = pa.array([date.fromisoformat(day)] * rows.num_rows, pa.date32())
    return rows.set_column(place, "trade_date", days)


def test_a_gap_outside_the_window_is_reported_and_filled_on_request(app: MarketApp) -> None:
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
    assert app.calls() == 2
    assert app.status() == {}
    assert app.run("market", "look-back").out == "no older gaps\n"
    assert app.content() == content


@pytest.fixture
def narrow(app: MarketApp) -> MarketApp:
    """Only the newest day is in the gap window."""
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    return app


def harm(app: MarketApp, table: str, *deeds: str) -> None:
    assert break_lake(["--home", str(app.home), "--table", f"market.{table}", *deeds]) == 0


def look_back(app: MarketApp) -> set[tuple[str, str, str]]:
    looked = app.run("market", "look-back", "--json")
    assert looked.code == 0, looked.err
    return {(g["trade_date"], g["table_name"], g["reason"]) for g in looked.json["gaps"]}


@pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself
def test_old_days_that_another_hand_touched_are_reported_and_brought_back(narrow: MarketApp) -> None:
    content = narrow.content()
    harm(narrow, "normalized_daily", "--corrupt-day", OLD)
    harm(narrow, "adjusted_daily", "--drop-day", PREPARED[2], "--corrupt-day", PREPARED[3])
    harm(narrow, "coverage", "--corrupt-day", PREPARED[0])
    assert look_back(narrow) == {
        (OLD, "normalized_daily", "changed"),
        (PREPARED[2], "adjusted_daily", "missing"),
        (PREPARED[3], "adjusted_daily", "changed"),
        (PREPARED[0], "coverage", "changed"),
    }
    assert narrow.status()["history"]["reason"].startswith("4 older days")

    filled = narrow.run("market", "backfill", "--gaps")
    assert filled.code == 0, filled.err
    assert narrow.calls() == narrow.calls("daily") == 1, "what is derived needs no source"
    assert narrow.content() == content
    assert narrow.status() == {}


@pytest.mark.parametrize(("table", "calls"), [("adjusted_daily", 0), ("normalized_adj_factor", 5)])
def test_a_corrupt_file_of_old_days_is_reported_and_replaced(
    narrow: MarketApp, table: str, calls: int
) -> None:
    content = narrow.content()
    harm(narrow, table, "--rot-file", OLD)
    assert look_back(narrow) == {(day, table, "damaged") for day in PREPARED[:-1]}, "a month is one file"

    assert narrow.run("market", "backfill", "--gaps").code == 0
    assert narrow.calls() == calls
    assert narrow.run("market", "heal").code == 0
    assert narrow.content() == content
    assert narrow.status() == {}


def test_old_rows_that_nobody_recorded_are_reported(narrow: MarketApp) -> None:
    with narrow.market.ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            "DELETE FROM partition_record"
            f" WHERE table_name = 'market.normalized_daily' AND partition = '{OLD}'"
        )
    assert look_back(narrow) == {(OLD, "normalized_daily", "unrecorded")}
    assert narrow.run("market", "backfill", "--gaps").code == 0
    assert look_back(narrow) == set()


@pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself
def test_an_old_day_that_a_run_is_at_is_left_to_that_run(narrow: MarketApp) -> None:
    """Between its commit and its record, a day looks as if another hand had been there."""
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


def care(app: MarketApp) -> dg.ExecuteInProcessResult:
    with app.instance() as instance, quiet():
        job = app.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey(["ops", "lake_maintenance"])]
        )


def test_a_nights_care_changes_no_content(app: MarketApp) -> None:
    content = app.content()
    ended = care(app)
    assert ended.success
    reported = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert "market.normalized_daily" in str(reported["tables"].value)
    assert "skipped_files" not in reported
    assert app.content() == content
    assert app.status() == {}


def test_a_nights_care_names_the_files_it_cannot_read(
    app: MarketApp, capfd: pytest.CaptureFixture[str]
) -> None:
    lake = app.market.lake
    day = app.frame("normalized_daily", OLD)
    lake.replace("market.normalized_daily", "2024-09-02", moved_to(day, "2024-09-02"))
    month = app.home / "lake" / "warehouse" / "market" / "normalized_daily"
    newest = max(month.rglob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)
    newest.write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    ended = care(app)
    assert ended.success
    reported = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert f"file://{newest}" in str(reported["skipped_files"].value)
    [warning] = [line for line in capfd.readouterr().err.splitlines() if " WARNING " in line]
    assert f"file://{newest}" in warning
