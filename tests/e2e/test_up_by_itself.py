"""`perennial up` on an empty folder: all is on, the newest days come by themselves, the UI shows what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.running import Running

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_up__empty_home__fills_its_newest_days(first_up: Running):
    first_up.settled()
    days = first_up.days()
    assert len(days) >= 6
    assert all(v.rows > 5_000 for v in first_up.versions(days).values())
    # The schedule's minute may have come meanwhile, with a run that goes on.
    others = [run for run in first_up.runs() if run["endTime"] and run["status"] != "SUCCESS"]
    assert others == [], [first_up.messages(run["runId"]) for run in others]
    done = first_up.command("check", "market")
    assert (done.returncode, done.stdout[:9]) == (0, "OK market"), done.stdout


def test_up__empty_home__has_every_sensor_and_schedule_on(first_up: Running):
    query = """{ repositoriesOrError { ... on RepositoryConnection { nodes {
      sensors { name sensorState { status } } schedules { name scheduleState { status } } } } } }"""
    (code,) = first_up.graphql(query)["repositoriesOrError"]["nodes"]
    states = {s["name"]: s["sensorState"]["status"] for s in code["sensors"]}
    states |= {s["name"]: s["scheduleState"]["status"] for s in code["schedules"]}
    assert {"market_gap_fill_sensor", "work_sweep_sensor", "market_daily_schedule"} <= states.keys()
    assert set(states.values()) == {"RUNNING"}


def test_automation_page__opened__shows_sensors_and_schedule(page: Page):
    page.goto("/automation")
    for name in ("market_gap_fill_sensor", "work_sweep_sensor", "market_daily_schedule"):
        page.get_by_text(name, exact=True).wait_for()


def test_asset_page__opened__shows_columns_owner_and_kinds(page: Page):
    page.goto("/assets/market/normalized_daily")
    for text in ("Opening price [CNY]", "market.normalized_daily", "data-platform", "Iceberg", "tushare"):
        page.get_by_text(text, exact=True).first.wait_for()
    page.get_by_text(re.compile("One row per stock and trading day")).first.wait_for()
    page.get_by_role("link", name="market", exact=True).first.wait_for()
    page.get_by_role("link", name="market_gap_fill_sensor").wait_for()


def test_partition_page__day_was_fetched__shows_rows_and_a_plot(page: Page, first_up: Running):
    first_up.settled()
    day = first_up.days()[-1]
    page.goto(f"/assets/market/normalized_daily?view=partitions&partition={day}")
    page.get_by_text("dagster/partition_row_count", exact=True).wait_for()
    page.get_by_text(str(first_up.versions([day])[day].rows), exact=True).first.wait_for()
    page.locator('img[src^="data:image/svg+xml"]').wait_for()


def test_up__nothing_happens__prints_no_noise(first_up: Running):
    first_up.settled()
    noise = re.compile("DEBUG|Traceback|Warning|Checking for new runs|skipped: ")
    assert [line for line in first_up.said if noise.search(line)] == []
