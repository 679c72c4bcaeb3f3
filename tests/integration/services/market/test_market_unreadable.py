"""A file that the disk does not give: its own days wait and say so, and everything else goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.services.market.market_app import (
    AFTER_HOLIDAY,
    API,
    PREPARED,
    TODAY,
    MarketApp,
)
from tests.integration.services.market.test_market_upkeep import care, look_back, moved_to

TABLE = "normalized_daily"


def data_files(app: MarketApp, table: str = TABLE) -> list[Path]:
    return sorted((app.home / "lake" / "warehouse" / "market" / table).rglob("*.parquet"))


def withhold(app: MarketApp, table: str = TABLE) -> list[Path]:
    """Whoever asks for them is refused: too many levels of links. Nobody remembers what was in them."""
    files = data_files(app, table)
    for path in files:
        path.rename(path.with_suffix(".whole"))
        path.symlink_to(path)
    for path in (app.home / "cache" / "lake").rglob("*.json"):
        path.unlink()
    return files


def restore(files: list[Path]) -> None:
    for path in files:
        path.unlink()
        path.with_suffix(".whole").rename(path)


def verdicts(app: MarketApp, table: str = TABLE) -> dict[str, tuple[str, str, str]]:
    rows = app.run("plan", "market", "--json").json["verdicts"]
    return {r["partition"]: (r["state"], r["reason_code"], r["reason"]) for r in rows if r["table"] == table}


def test_the_plan_and_status_say_which_file_and_what_to_do(app: MarketApp) -> None:
    files = withhold(app)
    seen = verdicts(app)
    assert {(state, reason) for state, reason, _ in seen.values()} == {("unavailable", "lake_unavailable")}
    assert all(any(path.name in why for path in files) for _, _, why in seen.values())
    for derived in ("adjusted_daily", "coverage"):
        waiting = verdicts(app, derived)
        assert {(state, reason) for state, reason, _ in waiting.values()} == {("waiting", "input_missing")}
        assert all(TABLE in why and "file://" in why for _, _, why in waiting.values())
    reported = app.status()
    assert set(reported) == {f"{t}:{d}" for t in (TABLE, "adjusted_daily", "coverage") for d in PREPARED}
    finding = reported[f"{TABLE}:{TODAY}"]
    assert (finding["health"], finding["reason_code"]) == ("broken", "lake_unavailable")
    assert "remove a file that is lost for good" in finding["action"]
    assert reported[f"coverage:{TODAY}"]["caused_by"] == f"{TABLE}:{TODAY}"
    checked = app.run("check", "market")
    assert (checked.code, f"{TABLE} of {TODAY} is unavailable" in checked.out) == (1, True)
    restore(files)
    assert app.status() == {}


@pytest.mark.parametrize("table", [TABLE, "suspensions", "coverage"])
def test_today_is_filled_while_an_older_file_cannot_be_read(app: MarketApp, table: str) -> None:
    content = app.content()
    files = withhold(app, table)
    app.at(f"{AFTER_HOLIDAY}T18:31")
    app.run("market", "heal")
    for name in (TABLE, "suspensions", "adjusted_daily", "coverage"):
        assert verdicts(app, name)[AFTER_HOLIDAY][:2] == ("healthy", ""), name
    if table in API:
        assert app.calls(API[table]) == 1, "what is there and cannot be read is not asked for"
    restore(files)
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.status() == {}
    assert content.items() <= app.content().items()


def test_what_is_removed_because_it_is_lost_is_fetched_again(app: MarketApp) -> None:
    content = app.content()
    for path in withhold(app):
        path.unlink()
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.content() == content
    assert app.status() == {}


def test_what_a_day_was_before_is_not_lost_because_it_cannot_be_read_now(app: MarketApp) -> None:
    app.fault("daily", "revised_day")
    with app.instance() as instance:
        assert app.materialize(instance, [TABLE], TODAY).success
    app.expect_healthy()
    files = withhold(app)
    app.run("market", "heal")
    assert app.rows("revisions", TODAY) == 0
    assert app.newest(f"revisions:{TODAY}").reason_code == "lake_unavailable"
    restore(files)
    app.later(hours=1)
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    reported = app.sql("SELECT DISTINCT table_name, change FROM market.revisions")
    assert reported == [{"table_name": TABLE, "change": "changed"}]
    assert app.status() == {}


def test_look_back__older_days_missing__reports_and_backfill_leaves_them(app: MarketApp) -> None:
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    content = app.content()
    app.drop("suspensions", PREPARED[0])
    files = withhold(app)
    held = {(day, TABLE, "lake_unavailable") for day in PREPARED[:-1]}
    assert look_back(app) == {*held, (PREPARED[0], "suspensions", "missing")}
    filled = app.run("market", "backfill", "--gaps")
    assert filled.code == 1
    assert app.calls() == app.calls("suspend_d") == 1
    assert look_back(app) == held
    assert files[0].is_symlink()
    restore(files)
    assert look_back(app) == set()
    app.run("market", "heal")
    assert app.content() == content


def test_find_gaps__suspensions_unavailable__calls_no_other_table_incomplete(
    app: MarketApp,
) -> None:
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    files = withhold(app, "suspensions")
    assert {(table, reason) for _, table, reason in look_back(app)} == {("suspensions", "lake_unavailable")}
    restore(files)
    assert look_back(app) == set()


def test_a_nights_care_passes_over_a_month_it_cannot_read(
    app: MarketApp, capfd: pytest.CaptureFixture[str]
) -> None:
    day = app.frame(TABLE, TODAY)
    for other in ("2024-08-01", "2024-08-02"):
        app.market.lake.replace(f"market.{TABLE}", other, moved_to(day, other))
    app.market.lake.replace(f"market.{TABLE}", "2024-09-02", moved_to(day, "2024-09-02"))
    path = next(path for path in data_files(app) if "2024-09" in str(path))
    path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)
    before = app.market.lake.snapshot_id(f"market.{TABLE}")
    ended = care(app)
    assert ended.success
    reported = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert path.name in str(reported["skipped_files"].value)
    assert app.market.lake.snapshot_id(f"market.{TABLE}") != before, "the other month is compacted"
    assert f"file://{path} cannot be read now" in capfd.readouterr().err
