"""The source answers 503 to everything while the platform runs, then answers again."""

from __future__ import annotations

import json

import pytest

from tests.e2e.running import DAILY, Running

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_up__source_is_down__work_waits_and_the_check_alerts_until_it_is_back(up: Running):
    day = up.days()[2]
    before, whole = up.newest_work(), up.versions([day])
    up.sandbox("POST", "faults", {"api": "*", "kind": "http_503"})
    up.break_lake("--drop-day", day)

    def deferred() -> bool:
        return any(r.key == f"{DAILY}:{day}" and r.status == "deferred" for r in up.work(before))

    up.wait(deferred, 90, "the work to be put off")
    check = up.command("check", "market")
    assert check.returncode == 1
    assert len(check.stdout.splitlines()) == 1
    assert check.stdout.startswith("ALERT market: ")
    assert "daily failed after 2 retries: " in check.stdout
    assert "503" in check.stdout
    reported = json.loads(up.command("status", "--json").stdout)
    assert {"tushare", f"{DAILY}:{day}"} & {f["subject"] for f in reported["findings"]}

    up.sandbox("DELETE", "faults")
    up.wait(lambda: up.versions([day]) == whole, 120, f"{day} to be healed")
    up.settled()
    assert up.command("check", "market").returncode == 0
    (row,) = [r for r in up.work(before) if r.key == f"{DAILY}:{day}"]
    assert row.attempts == 2
