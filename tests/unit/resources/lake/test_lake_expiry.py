"""How long the past can be read: a snapshot's days begin when another takes its place."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resources.lake.client import Lake
from resources.lake.error import SnapshotGone
from tests.unit.resources.lake.frames import DAILY, on_files, prices

MONDAY, PRICES = "2026-11-16", "market.prices"
A_WEEK = timedelta(seconds=2)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return on_files(tmp_path)


def tidy(lake: Lake) -> None:
    lake.maintain(PRICES, now=datetime.now(UTC), compact_before=None, expire_after=A_WEEK, orphan_age=A_WEEK)


def test_what_was_current_until_today_is_kept_however_old_it_is(lake: Lake) -> None:
    first = lake.replace(PRICES, MONDAY, prices(MONDAY)).snapshot_id
    whole = lake.scan(PRICES).read_all()
    time.sleep(A_WEEK.total_seconds() + 0.5)
    lake.replace(PRICES, MONDAY, prices(MONDAY, scale=2))
    tidy(lake)
    assert lake.scan(PRICES, as_of=first).read_all().equals(whole)


def test_a_table_says_itself_how_long_its_past_can_be_read(tmp_path: Path) -> None:
    long_lived = replace(DAILY, name="market.reports", history=timedelta(days=3650))
    lake = on_files(tmp_path, (DAILY, long_lived))
    past = {}
    for name in (PRICES, "market.reports"):
        past[name] = lake.replace(name, MONDAY, prices(MONDAY)).snapshot_id
        lake.replace(name, MONDAY, prices(MONDAY, scale=2))
        lake.maintain(name, now=datetime.now(UTC) + timedelta(days=365), compact_before=None)
    assert lake.scan("market.reports", as_of=past["market.reports"]).read_all().num_rows
    with pytest.raises(SnapshotGone):
        lake.scan(PRICES, as_of=past[PRICES]).read_all()


@pytest.mark.parametrize("ask", ["scan", "sql"])
def test_what_goes_while_it_is_read_is_gone_and_not_corrupt(
    lake: Lake, ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lake.replace(PRICES, MONDAY, prices(MONDAY)).snapshot_id
    assert first is not None
    lake.replace(PRICES, MONDAY, prices(MONDAY, scale=2))
    time.sleep(A_WEEK.total_seconds() + 0.5)
    if ask == "scan":
        stream = lake.scan(PRICES, as_of=first)
        tidy(lake)
        with pytest.raises(SnapshotGone):
            stream.read_all()
        return
    reconcile = lake._views.of_all

    def slowly(*arguments: object, **named: object) -> object:
        found = reconcile(*arguments, **named)  # type: ignore[arg-type]
        monkeypatch.undo()
        tidy(lake)
        return found

    monkeypatch.setattr(lake._views, "of_all", slowly)
    with pytest.raises(SnapshotGone):
        lake.sql(f"SELECT * FROM {PRICES}", as_of={PRICES: first})
