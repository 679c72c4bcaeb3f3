"""A run terminated by a person ends as cancelled; its work is queued again and done."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.running import DAILY, Running

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

STALL_SECONDS = 12
TERMINATE = "mutation($run: String!) { terminateRun(runId: $run) { __typename } }"


def test_terminate__run_at_work__is_cancelled_and_its_day_healed_by_another(up: Running):
    day = up.days()[-2]
    whole, known = up.versions([day]), {run["runId"] for run in up.runs()}
    up.sandbox("DELETE", "calls")
    up.sandbox("POST", "faults", {"api": "daily", "kind": "stall", "seconds": STALL_SECONDS, "times": 1})
    up.break_lake("--drop-day", day)
    up.wait(lambda: up.sandbox("GET", "calls?api=daily")["recent"], 60, "the stalled call")

    def new(status: str) -> list[dict[str, Any]]:
        return [r for r in up.runs(statuses=[status]) if r["runId"] not in known and DAILY in r["tables"]]

    (run,) = new("STARTED")
    up.graphql(TERMINATE, run=run["runId"])
    (ended,) = up.wait(lambda: new("CANCELED"), STALL_SECONDS + 20, "the run's end")
    assert ended["runId"] == run["runId"]
    up.wait(lambda: up.versions([day]) == whole, 120, f"{day} to be healed")
    up.settled()
