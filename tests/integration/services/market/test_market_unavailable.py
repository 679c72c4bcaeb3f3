"""Files that cannot be read now: their own days wait and say so, and everything else goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.services.market.market_app import (
    AFTER_HOLIDAY,
    PREPARED,
    TODAY,
    MarketApp,
)
from tests.integration.services.market.test_market_upkeep import maintain, moved_to

TABLE = "normalized_daily"


def data_files(app: MarketApp, table: str = TABLE) -> list[Path]:
    return sorted((app.home / "lake" / "warehouse" / "market" / table).rglob("*.parquet"))


def withhold(app: MarketApp, table: str = TABLE) -> list[Path]:
    """Make the files unreadable (a loop of links), and forget what was in them."""
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


def test_status__files_unavailable__names_the_file_and_what_to_do(app: MarketApp) -> None:
    content = app.content()
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
    assert (checked.code, f"{TABLE} is unavailable on {len(PREPARED)} days" in checked.out) == (1, True)

    for path in files:
        path.unlink()
    assert app.run("market", "heal").code == 0
    assert app.content() == content
    assert app.status() == {}


def test_heal__older_file_unavailable__fills_today(app: MarketApp) -> None:
    content = app.content()
    files = withhold(app)
    app.at(f"{AFTER_HOLIDAY}T18:31")
    app.run("market", "heal")
    for name in (TABLE, "suspensions", "adjusted_daily", "coverage"):
        assert verdicts(app, name)[AFTER_HOLIDAY][:2] == ("healthy", ""), name
    assert app.calls("daily") == 1, "what is there and cannot be read is not fetched"
    restore(files)
    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.status() == {}
    assert content.items() <= app.content().items()


def test_heal__old_values_of_a_revision_unavailable__waits_for_them(app: MarketApp) -> None:
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


def test_plan__older_suspensions_unavailable__calls_no_other_table_incomplete(app: MarketApp) -> None:
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    files = withhold(app, "suspensions")
    older = [v for v in app.market.plan().verdicts if v.partition in PREPARED[:-1]]
    assert {(v.table, v.reason_code) for v in older} == {("suspensions", "lake_unavailable")}
    restore(files)
    assert app.status() == {}


def test_maintenance__a_month_unavailable__compacts_the_others(
    app: MarketApp, caplog: pytest.LogCaptureFixture
) -> None:
    day = app.frame(TABLE, TODAY)
    for other in ("2024-08-01", "2024-08-02"):
        app.market.lake.replace(f"market.{TABLE}", other, moved_to(day, other))
    app.market.lake.replace(f"market.{TABLE}", "2024-09-02", moved_to(day, "2024-09-02"))
    path = next(path for path in data_files(app) if "2024-09" in str(path))
    path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)
    before = app.snapshots(TABLE)
    ended = maintain(app)
    assert ended.success
    reported = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert path.name in str(reported["skipped_files"].value)
    assert app.snapshots(TABLE) != before, "the other month is compacted"
    assert f"file://{path} cannot be read now" in caplog.text
