"""Takes the pictures of README and guide: `perennial demo`, `perennial up`, `python -m tests.e2e.pictures`.

With the same settings for all three. It breaks a day, waits until it is healed, and looks at what a person
would.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.cli.up import ui_url
from orchestration.domains.market import open_market
from orchestration.environments import load_settings
from orchestration.settings import PROJECT_ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

IMAGES = PROJECT_ROOT / "docs" / "images"
SIZE = (1120, 780)
DAILY = "normalized_daily"
COMMAND = Path(sys.executable).with_name("perennial")


def main() -> None:
    from playwright.sync_api import sync_playwright

    settings = load_settings()
    market = open_market(settings)
    day = sorted(market.lake.partitions(f"market.{DAILY}"))[-3]
    before = market.lake.version(f"market.{DAILY}", day)
    subprocess.run([COMMAND, "sandbox", "break", day, "--drop-day"], check=True)
    while market.lake.version(f"market.{DAILY}", day) != before:
        time.sleep(1)
    time.sleep(30)  # what derives from it, and a tick that finds nothing
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(
            viewport={"width": SIZE[0], "height": SIZE[1]},
            timezone_id="Asia/Shanghai",
            base_url=ui_url(settings),
        ).new_page()
        take_pictures(page, day)
        page.goto((settings.home / "demo" / "report-2025.html").as_uri())
        take(page, "report")
        browser.close()


def take_pictures(page: Page, day: str) -> None:
    page.goto("/runs")
    page.get_by_text("Hide navigation").click()
    take(page, "runs", page.get_by_text("perennial/reason: gap").first)
    page.goto(f"/assets/market/{DAILY}?view=partitions&partition={day}")
    take(page, "heal", page.locator('img[src^="data:image/svg+xml"]').first)
    page.goto("/locations/__repository__@perennial/sensors/market_gap_fill_sensor")
    started = page.get_by_role("row").filter(has_text="1 run requested")
    started.get_by_role("button", name="View logs").first.click()
    take(page, "tick", page.get_by_role("dialog").get_by_text("start a run").first)
    page.goto("/locations/__repository__@perennial/jobs/market_backfill_job")
    page.get_by_role("button", name="Materialize all").click()
    dialog = page.get_by_role("dialog")
    days = dialog.locator("input[placeholder]").first
    days.fill("[2026-10-12...2026-10-23]")
    days.press("Enter")
    take(page, "backfill", dialog.get_by_text("10 partitions"))


def take(page: Page, name: str, shown: Locator | None = None) -> None:
    if shown is not None:
        shown.wait_for()
    time.sleep(3)  # the UI fades in what it shows
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
