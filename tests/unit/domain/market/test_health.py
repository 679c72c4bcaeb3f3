"""Findings of the market: what is not healthy, since when, what happens next, what a person can do."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import UTC, date, timedelta

import pytest

from domain.market.health import findings
from domain.shared.error import PermanentRunnerError, TransientResourceError
from domain.shared.health import Finding, SourceFreshness
from domain.shared.reasons import actions
from domain.shared.work import Work
from domain.shared.work_findings import not_started
from resources.tushare import errors
from tests.unit.domain.market.world import COVERED, DAILY, TUESDAY, Market, days, shanghai_time, unavailable
from tests.unit.domain.rows import CREATED, row, source

PRICES, FACTORS = "normalized_daily", "normalized_adj_factor"
KEY = f"{PRICES}:{TUESDAY}"
OLD_KEY = f"{PRICES}:2026-03-02"


@pytest.fixture
def market() -> Market:
    return Market.healthy("2026-11-17 20:00")


@pytest.fixture
def gap(market: Market) -> Market:
    """The prices of today are gone, and coverage says so already."""
    market.drop(PRICES, TUESDAY)
    market.work(market.verdict(COVERED, TUESDAY))
    return market


def found(
    market: Market,
    *rows: Work,
    sources: tuple[SourceFreshness, ...] = (),
    holes: Mapping[str, Sequence[date]] | None = None,
    earlier: Mapping[str, Sequence[date]] | None = None,
) -> list[Finding]:
    now = market.now
    return findings(market.plan, rows, sources, market.calendar, now, now, holes=holes, earlier=earlier)


def only(
    market: Market,
    *rows: Work,
    sources: tuple[SourceFreshness, ...] = (),
    holes: Mapping[str, Sequence[date]] | None = None,
) -> Finding:
    [finding] = found(market, *rows, sources=sources, holes=holes)
    return finding


# From the plan


def test_findings__healthy_market__none(market: Market) -> None:
    assert not found(market, sources=(source(market.now),))


@pytest.mark.parametrize("rows", [(), (row("completed", KEY),)])
def test_findings__gap_without_open_work__is_healing(gap: Market, rows: tuple[Work, ...]) -> None:
    finding = only(gap, *rows)
    assert (finding.domain, finding.subject, finding.health) == ("market", KEY, "healing")
    assert (finding.reason_code, finding.next_attempt, finding.work_id) == ("missing", gap.now, None)
    assert finding.action == not_started("market")


def test_findings__empty_lake__one_for_each_due_verdict() -> None:
    market = Market(shanghai_time("2026-11-17 20:00"))
    assert sorted(f.subject for f in found(market)) == sorted(market.due())


def test_findings__partition_unavailable__is_broken_and_causes_the_others(market: Market) -> None:
    market.states[PRICES, str(TUESDAY)] = unavailable(market.states[PRICES, str(TUESDAY)])
    cause, *waiting = found(market)
    assert (cause.health, cause.reason_code) == ("broken", "lake_unavailable")
    assert cause.action == actions("market")["lake_unavailable"]
    assert {(f.health, f.reason_code, f.caused_by) for f in waiting} == {("healing", "input_missing", KEY)}


def test_findings__derived_table_due__names_its_cause(market: Market) -> None:
    market.drop(PRICES, TUESDAY)
    cause, effect = found(market)
    assert (cause.subject, cause.caused_by) == (KEY, None)
    assert (effect.subject, effect.caused_by) == (f"{COVERED}:{TUESDAY}", KEY)


@pytest.mark.parametrize(
    ("seen", "expected"), [(1, ("healing", "partial")), (2, ("explained", "source_says_so"))]
)
def test_findings__partial_day__is_healing_until_the_source_repeats_it(
    market: Market, seen: int, expected: tuple[str, str]
) -> None:
    market.put(PRICES, TUESDAY, 950, seen=seen)
    market.settle()
    finding = only(market)
    assert (finding.health, finding.reason_code) == expected
    assert finding.since == market.now
    assert finding.next_attempt == (market.now + timedelta(hours=1) if seen == 1 else None)


# From the ledger


def test_findings__work_cancelled_for_this_reason__is_explained(gap: Market) -> None:
    due, at = gap.verdict(PRICES, TUESDAY), shanghai_time("2026-11-17 19:00").astimezone(UTC)
    finding = only(gap, row("cancelled", KEY, fingerprint=due.fingerprint, finished_at=at))
    assert (finding.health, finding.reason_code, finding.work_id) == ("explained", "called_off", 7)
    assert (finding.next_attempt, finding.since) == (None, at)


def test_findings__several_work_items__the_current_one_counts(gap: Market) -> None:
    wanted = gap.verdict(PRICES, TUESDAY).fingerprint
    failed = row("failed", KEY, id=1, fingerprint="before", error="no right")
    off = row("cancelled", KEY, id=2, fingerprint=wanted)
    other = row("cancelled", KEY, id=3, fingerprint="another")
    running = row("running", KEY, id=4, fingerprint="before")
    assert only(gap, failed, off, other).reason_code == "called_off"
    assert only(gap, failed, other).health == "broken"
    assert only(gap, running, off).work_id == 4


def test_findings__work_deferred__has_its_reason_and_next_attempt(gap: Market) -> None:
    later = gap.now + timedelta(minutes=8)
    finding = only(gap, row("deferred", KEY, reason_code="source_down", error="HTTP 502", not_before=later))
    assert (finding.health, finding.reason_code, finding.work_id) == ("healing", "source_down", 7)
    assert (finding.next_attempt, finding.since) == (later, CREATED)
    assert finding.action == actions("market")["source_down"]


def test_findings__work_failed__is_broken_without_next_attempt(gap: Market) -> None:
    finding = only(gap, row("failed", KEY, reason_code="unclassified", error="KeyError: 'x'"))
    assert (finding.health, finding.next_attempt) == ("broken", None)
    assert finding.action == actions("market")["unclassified"].replace("ID", "7")


@pytest.mark.parametrize(("ago", "reason"), [(-60, "missing"), (0, "missing"), (1e-6, "worker_lost")])
def test_findings__work_running__is_lost_once_its_lease_has_ended(
    gap: Market, ago: float, reason: str
) -> None:
    """By the machine's clock, wherever the business clock was stopped."""
    running = row("running", KEY, lease_until=gap.now.astimezone(UTC) - timedelta(seconds=ago))
    for now in (gap.now, gap.now - timedelta(hours=1)):
        [finding] = findings(gap.plan, [running], (), gap.calendar, now, gap.now)
        assert (finding.health, finding.reason_code) == ("healing", reason)
        assert finding.next_attempt == (now if reason == "worker_lost" else None)


def test_findings__work_outside_the_window__is_shown_unless_done(market: Market) -> None:
    assert only(market, row("deferred", OLD_KEY, error="HTTP 502")).subject == OLD_KEY
    assert only(market, row("failed", OLD_KEY, error="HTTP 502")).health == "broken"
    assert not found(market, row("completed", OLD_KEY))


def test_findings__old_failure_of_a_healthy_day__is_not_shown(market: Market) -> None:
    assert not found(market, row("failed", KEY, error="HTTP 502"))


@pytest.mark.parametrize(
    "error",
    [e for _, e in inspect.getmembers(errors, inspect.isclass) if e.__module__ == errors.__name__],
)
def test_actions__error_of_the_source__has_one(
    error: type[TransientResourceError | PermanentRunnerError],
) -> None:
    action = actions("market")[error.reason_code]
    if issubclass(error, PermanentRunnerError):
        assert not action.startswith("nothing"), "a permanent failure waits for a person"


# From the sources and from the history


@pytest.mark.parametrize(
    ("success", "failure", "health", "reason_code", "since"),
    [
        (None, None, "healing", "source_never_ingested", None),
        (None, "2026-11-17 19:00", "broken", "source_error", "2026-11-17 19:00"),
        ("2026-11-16 18:31", "2026-11-17 19:00", "broken", "source_error", "2026-11-17 19:00"),
        ("2026-11-13 12:00", None, "stale", "source_stale", "2026-11-13 12:00"),
        ("2026-10-12 12:00", None, "broken", "source_error", None),
    ],
)
def test_findings__source_not_fresh__is_shown(
    market: Market, success: str | None, failure: str | None, health: str, reason_code: str, since: str | None
) -> None:
    at = [shanghai_time(text) if text else None for text in (success, failure, since)]
    finding = only(market, sources=(source(at[0], at[1], "HTTP 502"),))
    assert (finding.subject, finding.health, finding.reason_code) == ("tushare.daily", health, reason_code)
    assert finding.since == at[2]


def test_findings__days_never_fetched__are_one_finding_for_each_run_of_days(market: Market) -> None:
    hole = days("2026-03-05", "2026-03-06", "2026-03-09")  # over a weekend
    alone = days("2026-04-01")
    first, second = found(market, holes={PRICES: (*hole, *alone), FACTORS: hole})
    assert {f.reason_code for f in (first, second)} == {"never_fetched"}
    assert {f.health for f in (first, second)} == {"stale"}
    assert (first.subject, second.subject) == ("history:2026-03-05…2026-03-09", "history:2026-04-01")
    both = f"--table {PRICES} --table {FACTORS}"
    assert f"`perennial market backfill --from 2026-03-05 --to 2026-03-09 {both}`" in first.action
    assert f"--to 2026-04-01 --table {PRICES}`" in second.action


def test_findings__days_before_the_first_of_a_table__are_explained(market: Market) -> None:
    """Of the others, so that nobody believes that they are there; nobody may have wanted them."""
    [finding] = found(market, earlier={FACTORS: days("2026-03-05", "2026-03-06")})
    assert (finding.subject, finding.health, finding.reason_code) == (
        "earlier:2026-03-05…2026-03-06",
        "explained",
        "never_fetched",
    )
    assert f"--from 2026-03-05 --to 2026-03-06 --table {FACTORS}`" in finding.action


def test_findings__never_fetched_day_of_all_tables__names_none(market: Market) -> None:
    holes = dict.fromkeys(DAILY, days("2026-04-01"))
    assert "`perennial market backfill --from 2026-04-01 --to 2026-04-01`" in only(market, holes=holes).action


def test_findings__never_fetched_day_has_work__is_that_of_the_work(market: Market) -> None:
    work = row("deferred", OLD_KEY, reason_code="source_down", error="HTTP 502")
    assert only(market, work, holes={PRICES: days("2026-03-02")}).subject == OLD_KEY
