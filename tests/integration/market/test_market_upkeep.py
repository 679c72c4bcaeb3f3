"""What happens once a week and every night: the look over the whole history, and the care of the lake."""

from __future__ import annotations

from datetime import date

import dagster as dg
import pyarrow as pa
import pytest

from domain.market.plan import FILL
from tests.integration.market.house import PREPARED, House, quiet
from tests.tools.break_lake import main as break_lake

OLD = PREPARED[1]


def moved_to(rows: pa.Table, day: str) -> pa.Table:
    place = rows.column_names.index("trade_date")
    days = pa.array([date.fromisoformat(day)] * rows.num_rows, pa.date32())
    return rows.set_column(place, "trade_date", days)


def test_a_gap_outside_the_window_is_reported_and_filled_on_request(house: House) -> None:
    content = house.content()
    house.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    house.drop("normalized_daily", OLD)
    house.drop("suspensions", PREPARED[2])
    assert house.run("market", "heal").code == 1, "two days are gone, and a person has to ask for them"
    assert house.calls() == 0, "they are outside the window that heals itself"
    assert {s: f["reason_code"] for s, f in house.status().items()} == {
        "normalized_daily": "history_lost",
        "suspensions": "history_lost",
    }

    looked = house.run("market", "look-back", "--json")
    assert looked.code == 0
    assert [(g["trade_date"], g["table_name"], g["reason"]) for g in looked.json["gaps"]] == [
        (PREPARED[2], "suspensions", "missing"),
        (OLD, "normalized_daily", "missing"),
    ]
    finding = house.status()["history"]
    assert (finding["health"], finding["action"]) == ("stale", "run `perennial market backfill --gaps`")

    filled = house.run("market", "backfill", "--gaps")
    assert filled.code == 0, filled.err
    assert house.calls() == 2
    assert house.status() == {}
    assert house.run("market", "look-back").out == "no older gaps\n"
    assert house.content() == content


@pytest.fixture
def narrow(house: House) -> House:
    """Only the newest day is in the gap window."""
    house.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    return house


def harm(house: House, table: str, *deeds: str) -> None:
    assert break_lake(["--home", str(house.home), "--table", f"market.{table}", *deeds]) == 0


def look_back(house: House) -> set[tuple[str, str, str]]:
    looked = house.run("market", "look-back", "--json")
    assert looked.code == 0, looked.err
    return {(g["trade_date"], g["table_name"], g["reason"]) for g in looked.json["gaps"]}


@pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself
def test_old_days_that_another_hand_touched_are_told_and_brought_back(narrow: House) -> None:
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
def test_a_damaged_file_of_old_days_is_told_and_replaced(narrow: House, table: str, calls: int) -> None:
    content = narrow.content()
    harm(narrow, table, "--rot-file", OLD)
    assert look_back(narrow) == {(day, table, "damaged") for day in PREPARED[:-1]}, "a month is one file"

    assert narrow.run("market", "backfill", "--gaps").code == 0
    assert narrow.calls() == calls
    assert narrow.run("market", "heal").code == 0
    assert narrow.content() == content
    assert narrow.status() == {}


def test_old_rows_that_nobody_recorded_are_told(narrow: House) -> None:
    with narrow.market.ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            "DELETE FROM partition_record"
            f" WHERE table_name = 'market.normalized_daily' AND partition = '{OLD}'"
        )
    assert look_back(narrow) == {(OLD, "normalized_daily", "unrecorded")}
    assert narrow.run("market", "backfill", "--gaps").code == 0
    assert look_back(narrow) == set()


@pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself
def test_an_old_day_that_a_run_is_at_is_left_to_that_run(narrow: House) -> None:
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


def care(house: House) -> dg.ExecuteInProcessResult:
    with house.instance() as instance, quiet():
        job = house.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey(["ops", "lake_maintenance"])]
        )


def test_a_nights_care_changes_no_content(house: House) -> None:
    content = house.content()
    ended = care(house)
    assert ended.success
    told = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert "market.normalized_daily" in str(told["tables"].value)
    assert "skipped_files" not in told
    assert house.content() == content
    assert house.status() == {}


def test_a_nights_care_names_the_files_it_cannot_read(
    house: House, capfd: pytest.CaptureFixture[str]
) -> None:
    lake = house.market.lake
    day = house.frame("normalized_daily", OLD)
    lake.replace("market.normalized_daily", "2024-09-02", moved_to(day, "2024-09-02"))
    month = house.home / "lake" / "warehouse" / "market" / "normalized_daily"
    newest = max(month.rglob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)
    newest.write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    ended = care(house)
    assert ended.success
    told = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert f"file://{newest}" in str(told["skipped_files"].value)
    [warning] = [line for line in capfd.readouterr().err.splitlines() if " WARNING " in line]
    assert f"file://{newest}" in warning
