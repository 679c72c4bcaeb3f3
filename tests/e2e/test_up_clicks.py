"""By clicking: a day, a month as one run, the daily schedule tried out; and a tick nobody asked for."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from assets.market.tables import weekdays
from assets.policies.tags import ONLY, REASON
from orchestration.domains.market import market_settings
from sandbox.exchange import Exchange
from tests.e2e.running import DAILY, Running

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BY_DAY = [
    *("suspensions", "normalized_adj_factor", "normalized_daily", "normalized_daily_basic"),
    *("adjusted_daily", "coverage", "revisions"),
]


def test_click__one_day_of_one_table__is_materialized(page: Page, up: Running):
    from playwright.sync_api import expect

    before, day = up.newest_work(), up.days()[-2]
    content = up.versions([day])
    page.goto(f"/assets/market/{DAILY}?view=partitions&partition={day}")
    page.get_by_text("dagster/partition_row_count", exact=True).wait_for()
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_placeholder("ex:")).to_have_value(day)
    dialog.get_by_role("button", name="Launch 1 run").click()

    def clicked() -> list[dict[str, Any]]:
        # Whatever else starts a run says why.
        return [r for r in up.runs(statuses=["SUCCESS"]) if REASON not in r["tags"]]

    (run,) = up.wait(clicked, 90, "the clicked run")
    assert run["tables"] == {DAILY}
    (row,) = [r for r in up.work(before) if r.key == f"{DAILY}:{day}"]
    assert (row.status, row.run_id) == ("completed", run["runId"])
    assert up.versions([day]) == content


def test_click__month_of_all_daily_tables__is_one_run(page: Page, up: Running):
    last = date.fromisoformat(up.days()[0]).replace(day=1) - timedelta(days=1)
    first = last.replace(day=1)
    keys = weekdays(first).get_partition_keys_in_range(_range(first, last))
    page.goto("/jobs")
    page.get_by_text("market_backfill_job", exact=True).first.click()
    page.get_by_role("button", name="Materialize all").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("materialize 7 assets").wait_for()
    days = dialog.locator("input[placeholder]").first
    days.fill(f"[{keys[0]}...{keys[-1]}]")
    days.press("Enter")
    dialog.get_by_text(f"{len(keys)} partitions").wait_for()
    known = {r["runId"] for r in up.runs()}
    dialog.get_by_role("button", name="Launch backfill").click()

    def ended() -> list[dict[str, Any]]:
        runs = [r for r in up.runs() if r["runId"] not in known and "dagster/backfill" in r["tags"]]
        return runs if runs and all(r["endTime"] for r in runs) else []

    (run,) = up.wait(ended, 150, "the backfill")
    assert (run["status"], run["tables"], run["tags"][ONLY]) == ("SUCCESS", set(BY_DAY), "needed")
    open_days = [str(d) for d in Exchange().open_days(first, last)]
    rows = {day: v.rows for day, v in up.versions(open_days).items()}
    assert all(count > 5_000 for count in rows.values())
    assert _row_counts(up, run["runId"], DAILY) == rows
    assert {r.status for r in up.work() if r.run_id == run["runId"]} == {"completed"}


def test_click__try_the_daily_schedule__evaluates_it(page: Page, up: Running):
    page.goto("/locations/__repository__@perennial/schedules/market_daily_schedule")
    page.get_by_role("button", name="Preview tick result").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button").filter(has_text="ontinue").or_(
        dialog.get_by_role("button").filter(has_text="valuate")
    ).first.click()
    dialog.get_by_text("nothing is due").or_(dialog.get_by_text("are waiting")).first.wait_for()


def test_daily_schedule__its_minute__ticks(up: Running):
    query = """query($s: ScheduleSelector!) { scheduleOrError(scheduleSelector: $s) { ... on Schedule {
      cronSchedule executionTimezone scheduleState { ticks { timestamp status skipReason } } } } }"""
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "perennial",
        "scheduleName": "market_daily_schedule",
    }
    schedule = up.graphql(query, s=selector)["scheduleOrError"]
    at = market_settings(up.settings).daily_at
    assert schedule["cronSchedule"] == f"{at.minute} {at.hour} * * 1-5"
    ticks = schedule["scheduleState"]["ticks"]
    assert up.ticks_at is not None
    if up.ticks_at.weekday() >= 5:
        assert ticks == []  # the schedule is for weekdays; on one of them this test sees it tick
        return
    (tick,) = ticks
    assert tick["status"] in ("SUCCESS", "SKIPPED")
    assert tick["timestamp"] % 60 == 0


def _range(first: date, last: date) -> Any:
    from dagster import PartitionKeyRange

    keys = [str(first + timedelta(days=n)) for n in range((last - first).days + 1)]
    weekday = [k for k in keys if date.fromisoformat(k).weekday() < 5]
    return PartitionKeyRange(weekday[0], weekday[-1])


def _row_counts(up: Running, run_id: str, table: str) -> dict[str, int]:
    """By day, what the run's newest materialization events say of an asset."""
    query = """query($run: ID!) { logsForRun(runId: $run) { ... on EventConnection { events {
      ... on MaterializationEvent { partition assetKey { path }
        metadataEntries { label ... on IntMetadataEntry { intValue } } } } } } }"""
    found: dict[str, int] = {}
    for event in up.graphql(query, run=run_id)["logsForRun"]["events"]:
        if event.get("assetKey", {}).get("path", [""])[-1] == table:
            for entry in event["metadataEntries"]:
                if entry["label"] == "dagster/partition_row_count":
                    found[event["partition"]] = entry["intValue"]
    return found
