"""Freshness rows, and the stamp that keeps sources apart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from domain.shared.error import InvalidInput, TransientResourceError


def only(ledger):
    (row,) = ledger.freshness.all()
    return row


def test_success_and_failure_are_told_apart(ledger, clock):
    ledger.freshness.succeeded("daily", rows_latest=5300, rows_today=5300, at=clock())
    failed_at = clock() + timedelta(hours=1)
    ledger.freshness.failed("daily", TransientResourceError("daily failed\nafter 3"), at=failed_at)
    row = only(ledger)
    assert (row.last_success, row.last_failure) == (clock(), failed_at)
    assert (row.rows_latest, row.rows_today, row.last_error) == (5300, 5300, "daily failed\nafter 3")
    assert row.updated_at == failed_at


def test_a_source_that_only_ever_failed_has_no_success(ledger):
    ledger.freshness.failed("daily", "connection refused")
    assert only(ledger).last_success is None
    assert only(ledger).rows_latest is None


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_a_failure_is_told_whatever_the_source_said(ledger, character):
    ledger.freshness.failed("daily", TransientResourceError(f"no JSON: {character}"))
    assert only(ledger).last_error == "no JSON: \ufffd"


def test_older_news_that_comes_late_changes_nothing(ledger, clock):
    ledger.freshness.succeeded("daily", 10, 10, at=clock())
    ledger.freshness.succeeded("daily", 5, 5, at=clock() - timedelta(hours=1))
    assert (only(ledger).rows_latest, only(ledger).last_success) == (10, clock())


def test_a_success_ends_a_failure_that_a_clock_ahead_has_told(ledger, clock):
    clock.advance(days=1)
    ledger.freshness.failed("daily", "down")
    clock.advance(days=-1)
    ledger.freshness.succeeded("daily", 10, 10)
    row = only(ledger)
    assert row.last_failure < row.last_success == clock()


def test_a_failure_is_told_although_a_clock_ahead_had_a_success(ledger, clock):
    clock.advance(days=1)
    ledger.freshness.succeeded("daily", 10, 10)
    ledger.freshness.failed("daily", "down")
    clock.advance(days=-1)
    ledger.freshness.failed("daily", "down again")
    row = only(ledger)
    assert row.last_success < row.last_failure == clock()
    assert (row.last_error, row.rows_latest) == ("down again", 10)


def test_clocks_that_are_nearly_right_are_believed(ledger, clock):
    ahead = clock() + timedelta(minutes=4)
    ledger.freshness.succeeded("daily", 10, 10, at=ahead)
    ledger.freshness.failed("daily", "down")
    assert (only(ledger).last_success, only(ledger).last_failure) == (ahead, clock())


def test_the_first_source_stamps_and_another_is_refused_with_the_way_out(ledger):
    assert ledger.stamped_source() is None
    ledger.stamp_source("sandbox")
    ledger.stamp_source("sandbox")
    with pytest.raises(InvalidInput, match="belongs to source 'sandbox', not 'tushare'") as refusal:
        ledger.stamp_source("tushare")
    assert "PERENNIAL_HOME" in refusal.value.remedy
    assert ledger.stamped_source() == "sandbox"


def test_of_many_that_stamp_at_once_one_wins_and_all_agree(ledger, open_ledger):
    ledgers = [open_ledger() for _ in range(8)]

    def stamp(number: int) -> str | None:
        try:
            ledgers[number].stamp_source(f"source {number}")
        except InvalidInput:
            return None
        return f"source {number}"

    with ThreadPoolExecutor(8) as pool:
        winners = [name for name in pool.map(stamp, range(8)) if name]
    assert winners == [ledger.stamped_source()]


def test_sources_of_one_domain_are_found_by_its_name(ledger):
    for name in ("carbon.manual", "carbon_x.manual", "tushare.daily"):
        ledger.freshness.succeeded(name, rows_latest=1, rows_today=None)
    assert [one.source for one in ledger.freshness.all("carbon")] == ["carbon.manual"]
    assert len(ledger.freshness.all()) == 3
