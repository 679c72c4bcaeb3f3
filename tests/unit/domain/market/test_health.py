"""Findings: what is not healthy, why, since when, what happens next and what a person can do."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from domain.market.health import findings
from domain.shared.error import PermanentRunnerError, TransientResourceError
from domain.shared.health import Finding
from domain.shared.reasons import actions
from domain.shared.work_findings import not_started
from resources.tushare import errors
from tests.unit.domain.market.world import (
    COVERED,
    TUESDAY,
    UNAVAILABLE,
    Market,
    shanghai_time,
    unavailable,
)

PRICES = "normalized_daily"
KEY = f"{PRICES}:{TUESDAY}"
CREATED = shanghai_time("2026-11-17 18:31")


@dataclass(frozen=True)
class Row:
    """A row of the ledger."""

    status: str
    key: str = KEY
    id: int = 7
    fingerprint: str = ""
    reason_code: str | None = None
    error: str | None = None
    attempts: int = 1
    not_before: datetime | None = None
    created_at: datetime = CREATED
    finished_at: datetime | None = None
    lease_until: datetime | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class Source:
    last_success: datetime | None
    last_failure: datetime | None = None
    last_error: str | None = None
    source: str = "tushare.daily"


@pytest.fixture
def market() -> Market:
    return Market.healthy("2026-11-17 20:00")


@pytest.fixture
def gap(market: Market) -> Market:
    """The prices of today are gone; coverage already tells."""
    market.drop(PRICES, TUESDAY)
    market.work(market.verdict(COVERED, TUESDAY))
    return market


def found(
    market: Market, *rows: Row, sources: tuple[Source, ...] = (), history_gaps: int = 0
) -> list[Finding]:
    return findings(
        market.plan, rows, sources, market.calendar, market.now, market.now, history_gaps=history_gaps
    )


def only(market: Market, *rows: Row, sources: tuple[Source, ...] = ()) -> Finding:
    [finding] = found(market, *rows, sources=sources)
    return finding


def test_a_healthy_market_has_no_findings(market: Market) -> None:
    assert not found(market, sources=(Source(market.now),))


# From the plan


def test_findings__gap_without_work__is_healing(gap: Market) -> None:
    finding = only(gap)
    assert (finding.domain, finding.subject, finding.health) == ("market", KEY, "healing")
    assert (finding.reason_code, finding.next_attempt) == ("missing", gap.now)
    assert finding.action == not_started("market")
    assert finding.reason == "its 1,000 rows are gone, 1,000 rows expected"


def test_findings__work_cancelled_by_a_person__is_explained(gap: Market) -> None:
    due = gap.verdict(PRICES, TUESDAY)
    at = shanghai_time("2026-11-17 19:00").astimezone(UTC)
    finding = only(gap, Row("cancelled", fingerprint=due.fingerprint, finished_at=at))
    assert (finding.health, finding.reason_code, finding.work_id) == ("explained", "called_off", 7)
    assert finding.reason == (
        "its work was cancelled 2026-11-17 11:00 UTC (its 1,000 rows are gone, 1,000 rows expected)"
    )
    assert (finding.next_attempt, finding.action) == (
        None,
        "nothing; to have it after all, `perennial work retry 7`",
    )


def test_findings__several_work_items__the_current_one_counts(gap: Market) -> None:
    wanted = gap.verdict(PRICES, TUESDAY).fingerprint
    failed = Row("failed", id=1, fingerprint="before", error="no right")
    off = Row("cancelled", id=2, fingerprint=wanted)
    other = Row("cancelled", id=3, fingerprint="another")
    running = Row("running", id=4, fingerprint="before")
    assert only(gap, failed, off, other).reason_code == "called_off"
    assert only(gap, failed, other).health == "broken"
    assert only(gap, running, off).work_id == 4


def test_findings__partition_unavailable__names_the_file_and_the_remedy(market: Market) -> None:
    market.states[PRICES, str(TUESDAY)] = unavailable(market.states[PRICES, str(TUESDAY)])
    cause, *waiting = found(market)
    assert (cause.health, cause.reason_code, cause.reason) == (
        "broken",
        "lake_unavailable",
        UNAVAILABLE,
    )
    assert cause.action == actions("market")["lake_unavailable"]
    assert {(f.health, f.reason_code, f.caused_by) for f in waiting} == {
        ("healing", "input_missing", f"{PRICES}:{TUESDAY}")
    }


def test_findings__partial_day__is_healing(market: Market) -> None:
    market.put(PRICES, TUESDAY, 950)
    market.settle()
    finding = only(market)
    assert (finding.health, finding.reason_code) == ("healing", "partial")
    assert finding.action == "nothing; the day is fetched again after 1, 6 and 24 hours"
    assert "fetched again from 2026-11-17 21:00" in finding.reason
    assert finding.since is not None
    assert finding.next_attempt is not None
    assert finding.next_attempt > market.now


def test_a_day_the_source_confirmed_is_explained(market: Market) -> None:
    market.put(PRICES, TUESDAY, 950, seen=2)
    market.settle()
    finding = only(market)
    assert (finding.health, finding.reason_code, finding.action) == ("explained", "source_says_so", "nothing")


# From the ledger


def test_findings__work_deferred__has_reason_and_next_attempt(gap: Market) -> None:
    later = gap.now + timedelta(minutes=8)
    finding = only(
        gap,
        Row(
            "deferred",
            reason_code="source_down",
            error="daily failed after 3 retries: HTTP 502",
            not_before=later,
        ),
    )
    assert finding.health == "healing"
    assert finding.reason == (
        "daily failed after 3 retries: HTTP 502 (its 1,000 rows are gone, 1,000 rows expected)"
    )
    assert (finding.reason_code, finding.next_attempt, finding.since, finding.work_id) == (
        "source_down", later, CREATED, 7,
    )  # fmt: skip
    assert finding.action == actions("market")["source_down"]


def test_findings__work_failed__is_broken_without_next_attempt(gap: Market) -> None:
    finding = only(gap, Row("failed", reason_code="unclassified", error="KeyError: 'x'"))
    assert (finding.health, finding.next_attempt) == ("broken", None)
    assert finding.action == actions("market")["unclassified"].replace("ID", "7")


def test_findings__work_running__needs_no_action(gap: Market) -> None:
    finding = only(gap, Row("running", lease_until=gap.now + timedelta(seconds=60)))
    assert (finding.health, finding.next_attempt) == ("healing", None)
    assert finding.action == "nothing; it is being worked on"


@pytest.mark.parametrize(("ago", "reason"), [(0, "missing"), (1, "worker_lost")])
def test_findings__lease_expired__is_worker_lost(gap: Market, ago: int, reason: str) -> None:
    row = Row("running", lease_until=gap.now.astimezone(UTC) - timedelta(microseconds=ago), run_id="abc")
    finding = only(gap, row)
    assert finding.reason_code == reason
    if reason == "worker_lost":
        subjects = (
            "the run that had it, abc, shows no sign of life; its lease ended at 2026-11-17 11:59:59 UTC"
        )
        assert finding.reason == subjects
        assert (finding.next_attempt, finding.action) == (gap.now, not_started("market"))


def test_finished_work_does_not_hide_a_gap(gap: Market) -> None:
    finding = only(gap, Row("completed"))
    assert (finding.work_id, finding.reason_code) == (None, "missing")


def test_findings__work_outside_the_window__is_shown(market: Market) -> None:
    key = f"{PRICES}:2026-03-02"
    assert only(market, Row("deferred", key=key, error="HTTP 502")).subject == key
    assert only(market, Row("failed", key=key, error="HTTP 502")).health == "broken"
    assert not found(market, Row("completed", key=key))


def test_findings__old_failure_of_a_healthy_day__is_not_shown(market: Market) -> None:
    assert not found(market, Row("failed", error="HTTP 502"))


@pytest.mark.parametrize(
    "error",
    [e for _, e in inspect.getmembers(errors, inspect.isclass) if e.__module__ == errors.__name__],
)
def test_every_error_of_the_source_has_its_action(
    error: type[TransientResourceError | PermanentRunnerError],
) -> None:
    action = actions("market")[error.reason_code]
    if issubclass(error, PermanentRunnerError):
        assert not action.startswith("nothing"), "a permanent failure waits for a person"


# From the sources


@pytest.mark.parametrize(
    ("source", "health", "reason_code"),
    [
        (Source(None), "healing", "source_never_ingested"),
        (Source(None, shanghai_time("2026-11-17 19:00"), "HTTP 502"), "broken", "source_error"),
        (Source(shanghai_time("2026-11-13 12:00")), "stale", "source_stale"),
        (Source(shanghai_time("2026-10-12 12:00")), "broken", "source_error"),
    ],
)
def test_findings__source_not_fresh__is_shown(
    market: Market, source: Source, health: str, reason_code: str
) -> None:
    finding = only(market, sources=(source,))
    assert (finding.subject, finding.health, finding.reason_code) == ("tushare.daily", health, reason_code)


def test_findings__source_fails__has_error_and_since(market: Market) -> None:
    failed = shanghai_time("2026-11-17 19:00")
    finding = only(market, sources=(Source(shanghai_time("2026-11-16 18:31"), failed, "HTTP 502"),))
    assert finding.reason == "HTTP 502; last success 2026-11-16 10:31 UTC"
    assert finding.since == failed


# From the past, and all together


def test_older_gaps_are_one_finding_with_its_remedy(market: Market) -> None:
    [finding] = found(market, history_gaps=12)
    assert (finding.reason_code, finding.health) == ("history_gaps", "stale")
    assert finding.reason.startswith("12 older days")
    assert finding.action == "run `perennial market backfill --gaps`"


def test_findings__empty_lake__one_for_each_due_verdict() -> None:
    market = Market(shanghai_time("2026-11-17 20:00"))
    subjects = [f.subject for f in found(market)]
    assert sorted(subjects) == sorted(market.due())


def test_a_lease_is_judged_on_the_machine_s_clock(gap: Market) -> None:
    """However the business clock was stopped."""
    row = Row("running", lease_until=gap.now + timedelta(seconds=30))
    [alive] = findings(gap.plan, [row], (), gap.calendar, gap.now + timedelta(days=1), gap.now)
    assert alive.reason_code != "worker_lost"
    [lost] = findings(gap.plan, [row], (), gap.calendar, gap.now, gap.now + timedelta(days=1))
    assert lost.reason_code == "worker_lost"


def test_findings__derived_table_waits__names_its_cause(market: Market) -> None:
    market.drop(PRICES, TUESDAY)
    cause, effect = found(market)
    assert (cause.subject, cause.caused_by) == (f"{PRICES}:{TUESDAY}", None)
    assert (effect.subject, effect.caused_by) == (f"{COVERED}:{TUESDAY}", cause.subject)
    assert effect.reason_code == "inputs_changed"
