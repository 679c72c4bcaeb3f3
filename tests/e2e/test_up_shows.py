"""What the UI says of a heal: the tick that found it, the run's reason, the day's event, the Timeline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.running import DAILY, Running

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SENSOR = "market_gap_fill_sensor"


@pytest.fixture
def healed(up: Running) -> dict[str, Any]:
    """The run of the command that healed a day."""
    day = up.days()[-4]
    known = {run["runId"] for run in up.runs()}
    up.switch_sensor(SENSOR, on=False)
    up.break_lake("--drop-day", day)
    done = up.command("market", "heal")
    up.switch_sensor(SENSOR, on=True)
    # Its code is 1 while days between those that were clicked were never fetched.
    assert f"done    {day}: {DAILY}" in done.stderr, done.stderr
    [run] = [run for run in up.runs() if run["runId"] not in known]
    return {**run, "day": day}


def test_heal__by_the_command__is_on_the_timeline_with_its_reason(
    page: Page, up: Running, healed: dict[str, Any]
) -> None:
    query = """query($run: ID!) { runOrError(runId: $run) { ... on Run {
      repositoryOrigin { repositoryLocationName } } } }"""
    found = up.graphql(query, run=healed["runId"])["runOrError"]
    assert found["repositoryOrigin"] == {"repositoryLocationName": "perennial"}
    page.goto("/overview/activity/timeline")
    page.get_by_text("Jobless asset materializations").first.wait_for()
    page.goto(f"/runs?q[0]=id%3A{healed['runId']}")
    page.get_by_text("perennial/reason: gap").first.wait_for()
    assert page.get_by_text("perennial_").count() == 0
    assert page.get_by_text("perennial/dispatch").count() == 0


def test_heal__of_a_day__its_event_names_the_reason_and_shows_a_plot(
    page: Page, healed: dict[str, Any]
) -> None:
    page.goto(f"/assets/market/{DAILY}?view=partitions&partition={healed['day']}")
    page.get_by_text("gap", exact=True).first.wait_for()
    page.locator('img[src^="data:image/svg+xml"]').first.wait_for()
    page.get_by_text("completeness", exact=True).first.wait_for()


def test_tick__nothing_is_due__says_what_it_found(up: Running) -> None:
    query = """query($s: SensorSelector!) { sensorOrError(sensorSelector: $s) { ... on Sensor {
      sensorState { ticks(limit: 20) { status skipReason } } } } }"""
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "perennial",
        "sensorName": SENSOR,
    }

    def reasons() -> list[str]:
        ticks = up.graphql(query, s=selector)["sensorOrError"]["sensorState"]["ticks"]
        return [t["skipReason"] for t in ticks if t["status"] == "SKIPPED"]

    found = up.wait(reasons, 60, "a tick that found nothing to do")
    assert re.match("nothing is due: .*healthy", found[0])


def test_lineage__new_home__is_not_empty(page: Page, up: Running) -> None:
    page.goto("/locations/__repository__@perennial/asset-groups/market")
    page.get_by_text(re.compile("[0-9]+% filled")).first.wait_for()
    assert page.get_by_text(re.compile("^0% filled")).count() == 0


def test_jobs__for_people__are_there_with_descriptions(page: Page, up: Running) -> None:
    page.goto("/jobs")
    for name in ("carbon_recalculate_job", "carbon_report_job", "market_daily_job", "upkeep_job"):
        page.get_by_text(name, exact=True).first.wait_for()
    page.goto("/locations/__repository__@perennial/jobs/market_backfill_job")
    page.get_by_text(re.compile("Fills a range of days in one run")).first.wait_for()
