"""Damage behind the platform's back, while it runs: seen, explained, healed, and how fast."""

from __future__ import annotations

import time

import pytest

from tests.e2e.running import DAILY, Running

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

QUEUED_WITHIN, HEALED_WITHIN = 10, 60
GAP_FILL = "market_gap_fill_sensor"


def test_up__three_days_deleted__are_queued_in_seconds_and_healed_in_a_minute(
    up: Running,
):
    days = up.days()[-3:]
    before, whole = up.newest_work(), up.versions(days)
    up.break_lake(*(word for day in days for word in ("--drop-day", day)))
    broken = time.monotonic()

    def queued() -> bool:
        return {r.key for r in up.work(before) if r.dispatch_id} >= {f"{DAILY}:{d}" for d in days}

    up.wait(queued, QUEUED_WITHIN, "the days to be queued")
    print(f"queued after {time.monotonic() - broken:.1f} s")
    up.wait(lambda: up.versions(days) == whole, HEALED_WITHIN, "the days to be healed")
    print(f"healed after {time.monotonic() - broken:.1f} s")
    up.settled()
    assert _times(up, before, days) == dict.fromkeys(days, 1)


def test_up__six_days_hurt_in_six_ways__heals_them_in_two_passes_with_reasons(up: Running):
    days = up.days()[-6:]
    before, whole, suspended = up.newest_work(), up.versions(days), up.versions(days, "suspensions")
    up.switch_sensor(GAP_FILL, on=False)
    hurt = ("rot-file", "drop-day", "drop-day", "corrupt-day", "drop-half", "drop-day")
    up.break_lake(*(word for pair in zip(hurt, days, strict=True) for word in pair))
    # It says how many rows the day's other tables must have, and must not hide the other days.
    up.break_lake("--rot-file", days[1], table="market.suspensions")
    verdicts = up.verdicts()
    up.switch_sensor(GAP_FILL, on=True)

    assert [verdicts[DAILY, d]["reason_code"] for d in days] == [
        *("corrupt", "missing", "missing", "changed", "incomplete", "missing")
    ]
    assert verdicts["suspensions", days[1]]["reason_code"] == "corrupt"
    assert "(50.0%) are left" in verdicts[DAILY, days[4]]["reason"]

    up.wait(lambda: up.versions(days) == whole, 150, "all six days to be healed")
    up.settled()
    assert up.versions(days, "suspensions") == suspended
    asked = {r.key: r.created_at for r in up.work(before) if r.key.startswith(f"{DAILY}:")}
    older, newer = ([asked[f"{DAILY}:{d}"] for d in half] for half in (days[:3], days[3:]))
    assert max(newer) < min(older)
    assert _times(up, before, days) == dict.fromkeys(days, 1)


def test_up__same_day_deleted_twice__heals_twice(up: Running):
    day = up.days()[0]
    before, whole = up.newest_work(), up.versions([day])
    for _ in range(2):
        up.break_lake("--drop-day", day)
        up.wait(lambda: up.versions([day]) == whole, HEALED_WITHIN, f"{day} to be healed")
    up.settled()
    assert _times(up, before, [day]) == {day: 2}


def _times(up: Running, after: int, days: list[str]) -> dict[str, int]:
    """How often each day's prices were fetched since."""
    keys = [r.key for r in up.work(after) if r.status == "completed"]
    return {day: keys.count(f"{DAILY}:{day}") for day in days}
