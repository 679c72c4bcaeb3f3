"""A file that the disk does not give: its own days wait and say so, and everything else goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.market.house import AFTER_HOLIDAY, API, PREPARED, TODAY, House
from tests.integration.market.test_market_upkeep import care, look_back, moved_to

TABLE = "normalized_daily"


def data_files(house: House, table: str = TABLE) -> list[Path]:
    return sorted((house.home / "lake" / "warehouse" / "market" / table).rglob("*.parquet"))


def withhold(house: House, table: str = TABLE) -> list[Path]:
    """Whoever asks for them is refused: too many levels of links. Nobody remembers what was in them."""
    files = data_files(house, table)
    for path in files:
        path.rename(path.with_suffix(".whole"))
        path.symlink_to(path)
    for path in (house.home / "cache" / "lake").rglob("*.json"):
        path.unlink()
    return files


def mend(files: list[Path]) -> None:
    for path in files:
        path.unlink()
        path.with_suffix(".whole").rename(path)


def verdicts(house: House, table: str = TABLE) -> dict[str, tuple[str, str, str]]:
    rows = house.run("plan", "market", "--json").json["verdicts"]
    return {r["partition"]: (r["state"], r["reason"], r["why"]) for r in rows if r["table"] == table}


def test_the_plan_and_status_say_which_file_and_what_to_do(house: House) -> None:
    files = withhold(house)
    seen = verdicts(house)
    assert {(state, reason) for state, reason, _ in seen.values()} == {("unknown", "lake_unreadable")}
    assert all(any(path.name in why for path in files) for _, _, why in seen.values())
    for derived in ("adjusted_daily", "coverage"):
        waiting = verdicts(house, derived)
        assert {(state, reason) for state, reason, _ in waiting.values()} == {("unknown", "input_missing")}
        assert all(why.startswith(f"it waits for {TABLE}: file://") for _, _, why in waiting.values())
    told = house.status()
    assert set(told) == {f"{t}:{d}" for t in (TABLE, "adjusted_daily", "coverage") for d in PREPARED}
    finding = told[f"{TABLE}:{TODAY}"]
    assert (finding["health"], finding["reason_code"]) == ("broken", "lake_unreadable")
    assert "remove a file that is lost for good" in finding["action"]
    assert told[f"coverage:{TODAY}"]["caused_by"] == f"{TABLE}:{TODAY}"
    checked = house.run("check", "market")
    assert (checked.code, f"{TABLE} of {TODAY} is unreadable" in checked.out) == (1, True)
    mend(files)
    assert house.status() == {}


@pytest.mark.parametrize("table", [TABLE, "suspensions", "coverage"])
def test_today_is_filled_while_an_older_file_cannot_be_read(house: House, table: str) -> None:
    content = house.content()
    files = withhold(house, table)
    house.at(f"{AFTER_HOLIDAY}T18:31")
    house.run("market", "heal")
    for name in (TABLE, "suspensions", "adjusted_daily", "coverage"):
        assert verdicts(house, name)[AFTER_HOLIDAY][:2] == ("healthy", ""), name
    if table in API:
        assert house.calls(API[table]) == 1, "what is there and cannot be read is not asked for"
    mend(files)
    said = house.run("market", "heal")
    assert said.code == 0, said.err
    assert house.status() == {}
    assert content.items() <= house.content().items()


def test_what_is_removed_because_it_is_lost_is_fetched_again(house: House) -> None:
    content = house.content()
    for path in withhold(house):
        path.unlink()
    said = house.run("market", "heal")
    assert said.code == 0, said.err
    assert house.content() == content
    assert house.status() == {}


def test_what_a_day_was_before_is_not_lost_because_it_cannot_be_read_now(house: House) -> None:
    house.fault("daily", "revised_day")
    with house.instance() as instance:
        assert house.materialize(instance, [TABLE], TODAY).success
    house.mended()
    files = withhold(house)
    house.run("market", "heal")
    assert house.rows("revisions", TODAY) == 0
    assert house.newest(f"revisions:{TODAY}").reason_code == "lake_unreadable"
    mend(files)
    house.later(hours=1)
    said = house.run("market", "heal")
    assert said.code == 0, said.err
    told = house.sql("SELECT DISTINCT table_name, change FROM market.revisions")
    assert told == [{"table_name": TABLE, "change": "changed"}]
    assert house.status() == {}


def test_older_days_are_told_by_the_look_back_and_left_by_a_backfill(house: House) -> None:
    house.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    content = house.content()
    house.drop("suspensions", PREPARED[0])
    files = withhold(house)
    held = {(day, TABLE, "lake_unreadable") for day in PREPARED[:-1]}
    assert look_back(house) == {*held, (PREPARED[0], "suspensions", "missing")}
    filled = house.run("market", "backfill", "--gaps")
    assert filled.code == 1
    assert house.calls() == house.calls("suspend_d") == 1
    assert look_back(house) == held
    assert files[0].is_symlink()
    mend(files)
    assert look_back(house) == set()
    house.run("market", "heal")
    assert house.content() == content


def test_find_gaps__suspensions_unavailable__calls_no_other_table_incomplete(house: House) -> None:
    house.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    files = withhold(house, "suspensions")
    assert {(table, reason) for _, table, reason in look_back(house)} == {("suspensions", "lake_unreadable")}
    mend(files)
    assert look_back(house) == set()


def test_a_nights_care_passes_over_a_month_it_cannot_read(
    house: House, capfd: pytest.CaptureFixture[str]
) -> None:
    day = house.frame(TABLE, TODAY)
    for other in ("2024-08-01", "2024-08-02"):
        house.market.lake.replace(f"market.{TABLE}", other, moved_to(day, other))
    house.market.lake.replace(f"market.{TABLE}", "2024-09-02", moved_to(day, "2024-09-02"))
    path = next(path for path in data_files(house) if "2024-09" in str(path))
    path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)
    before = house.market.lake.snapshot_id(f"market.{TABLE}")
    ended = care(house)
    assert ended.success
    told = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert path.name in str(told["skipped_files"].value)
    assert house.market.lake.snapshot_id(f"market.{TABLE}") != before, "the other month is compacted"
    assert f"file://{path} cannot be read now" in capfd.readouterr().err
