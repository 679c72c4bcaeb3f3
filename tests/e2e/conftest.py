"""One whole Perennial for the session, real time, ports and folder of its own; and a browser."""

from __future__ import annotations

import os
import shutil
import signal
import time as clock
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from domain.market.trading import SHANGHAI
from orchestration.cli.up import free_port
from sandbox.market.calendar import Calendar
from tests.e2e.running import Running
from tests.processes import started_by_up
from tests.settings import make_settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

DAYS = 6
"""Open days that the gap window must hold: enough for two passes."""
TICK_AHEAD = timedelta(seconds=90)
"""How soon after the start the daily schedule ticks: the first fill comes before it."""


def pytest_collection_modifyitems(items: list[pytest.WorkRequest]) -> None:
    """Those that start a product of their own come first: two at once would starve each other."""
    items.sort(key=lambda item: "first_up" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def first_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Started on an empty folder; leaves nothing behind."""
    home = tmp_path_factory.mktemp("e2e") / "home"
    now = datetime.now(SHANGHAI)
    tick = (now + TICK_AHEAD).replace(second=0, microsecond=0)
    settings = make_settings(
        home=home,
        ui_port=free_port(),
        sandbox_port=free_port(),
        api_port=free_port(),
        gap_window_days=_window(now.date()),
        daily_at=tick.time(),
        tushare_retry_delays=(1.0, 1.0),
        carbon_years=(2015, 2032),
    )
    running = Running(settings, ticks_at=tick)
    try:
        running.start()
        yield running
    finally:
        said = running.stop()
        left = started_by_up(home)
    assert running.process.returncode == 128 + signal.SIGINT, said[-2000:]
    assert left == []


@pytest.fixture
def up(first_up: Running) -> Iterator[Running]:
    """The same, after the schedule's tick, with nothing to do; faults of a test end with it.

    Tests hurt different days: the ledger puts off, ever longer, what has to be done again and again.
    """
    assert first_up.ticks_at is not None
    ahead = (first_up.ticks_at - datetime.now(SHANGHAI)).total_seconds()
    if ahead > 0:
        clock.sleep(ahead + 10)
    first_up.settled()
    yield first_up
    first_up.sandbox("DELETE", "faults")


def _window(today: date) -> int:
    """Days of the gap window, so that `DAYS` open days before today are inside."""
    past = Calendar.load().open_days(today - timedelta(days=30), today - timedelta(days=1))
    return (today - past[-DAYS]).days


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's address. Where there is none, CI fails and a laptop skips with the reason."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("there is no chromium", pytrace=False)
    pytest.skip("there is no chromium")


@pytest.fixture
def page(chromium: str, first_up: Running, tmp_path: Path) -> Iterator[Page]:
    """A fresh browser on the UI."""
    from playwright.sync_api import sync_playwright

    flags = (
        "--no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync"
    )
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=chromium,
            args=flags.split(),
            viewport={"width": 1280, "height": 800},
            timezone_id="Asia/Shanghai",
            base_url=f"http://127.0.0.1:{first_up.settings.ui_port}",
        )
        context.set_default_timeout(30_000)
        yield context.new_page()
        context.close()
