"""What `perennial status` prints: one screen of 80 columns, with cause and remedy of the worst."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from domain.shared.finding_groups import group
from domain.shared.health import Finding
from orchestration.cli.status_view import Line, Screen, render

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HEAD = ("2026-11-20 12:00, all times in UTC", "9 broken: a person is needed", "")
LONG = "Failed to establish a new connection: [Errno 111] Connection refused " * 6


def found(count: int) -> list[Finding]:
    return [
        Finding(
            "market",
            f"normalized_daily:2026-11-{day:02}",
            "broken",
            f"code_{number:02}",
            LONG,
            NOW - timedelta(days=3),
            NOW + timedelta(hours=1),
            action="set TUSHARE_TOKEN to a valid token; the work is then queued again",
        )
        for number in range(count)
        for day in range(2, 14)
    ]


def shown(count: int, screen: Screen) -> list[str]:
    return [str(line) for line in render(group(found(count)), HEAD, screen, NOW)]


@pytest.mark.parametrize("count", [1, 3, 9, 20, 60])
@pytest.mark.parametrize("screen", [Screen(80, 24), Screen(60, 30), Screen(120, 12)])
def test_render__any_number_of_groups__fits_one_screen_and_counts_the_rest(
    count: int, screen: Screen
) -> None:
    lines = shown(count, screen)
    assert screen.height is not None
    assert len(lines) < screen.height
    assert all(len(line) <= screen.width for line in lines)
    named = sum("code_" in line for line in lines)
    left = [int(line.split()[1]) for line in lines if line.startswith("and ")]
    assert named + sum(left) == count
    in_full = sum("> set TUSHARE_TOKEN" in line for line in lines)
    assert ("--all" in lines[-1]) is (in_full < count)


def test_render__without_a_height__shows_everything() -> None:
    lines = shown(60, Screen(80))
    assert sum("> set TUSHARE_TOKEN" in line for line in lines) == 60
    assert "--all" not in lines[-1]


def test_render__one_group__says_what_why_when_and_the_remedy() -> None:
    found = [
        Finding(
            "market", "coverage:2026-11-17", "healing", "inputs_changed", "an input changed", caused_by="a:1"
        ),
        Finding("market", "a:1", "broken", "token", "code 40101\x1b[2J", NOW, None, "set it", attempts=2),
    ]
    assert render(group(found), ("head",), Screen(80, 24), NOW) == [
        Line("head"),
        Line("market a: 1", "bold", "broken"),
        Line("          token: code 40101\N{REPLACEMENT CHARACTER}[2J"),
        Line("          since " + f"{NOW.astimezone():%Y-%m-%d %H:%M}, 2 attempts", "dim"),
        Line("          > set it", "green"),
        Line("          so healing: inputs_changed: coverage: 2026-11-17", "dim"),
    ]


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_new_york")
def test_render__reasons_with_times_of_other_zones__are_in_the_one_of_the_head() -> None:
    finding = Finding(
        "market",
        "normalized_daily:2026-11-17",
        "healing",
        "worker_lost",
        "due from 2026-11-17 18:30 Asia/Shanghai; its lease ended at 2026-11-20 11:59:00 UTC",
        NOW - timedelta(days=1),
        NOW + timedelta(hours=1),
        action="ask again after 2026-11-21 18:30 Asia/Shanghai",
    )
    text = " ".join(
        str(line).strip() for line in render(group([finding]), HEAD, Screen(110), NOW)[len(HEAD) :]
    )
    assert "due from 2026-11-17 05:30; its lease ended at 2026-11-20 06:59" in text
    assert "since 2026-11-19 07:00, next attempt 2026-11-20 08:00" in text
    assert "after 2026-11-21 05:30" in text
    assert "UTC" not in text
    assert "Shanghai" not in text
