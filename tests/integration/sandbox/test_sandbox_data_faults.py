"""Faults in data, as a client meets them on the wire."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from sandbox.exchange import Exchange
from sandbox.server import SandboxServer
from tests.oracles.exchange import true_rows

Ask = Callable[..., Any]
DAY = date(2026, 11, 17)
PARAMS = {"trade_date": "20261117"}


def test_partial_day__set_and_cleared__is_partial_and_whole(
    server: SandboxServer, ask: Ask, exchange: Exchange
) -> None:
    whole = ask("daily", PARAMS)["data"]["items"]
    server.faults.set("daily", "partial_day", day="2026-11-17", keep=0.6)
    part = ask("daily", PARAMS)["data"]["items"]
    assert 0.55 < len(part) / len(whole) < 0.65
    assert ask("daily", PARAMS)["data"]["items"] == part
    server.faults.clear("daily")
    assert ask("daily", PARAMS)["data"]["items"] == whole
    assert len(whole) == true_rows(exchange, "daily", DAY).num_rows


def test_revised_day__set_and_cleared__differs_and_is_restored(server: SandboxServer, ask: Ask) -> None:
    before = ask("adj_factor", PARAMS)["data"]["items"]
    server.faults.set("adj_factor", "revised_day", day="2026-11-17")
    after = ask("adj_factor", PARAMS)["data"]["items"]
    assert [row[0] for row in after] == [row[0] for row in before]
    assert 0 < sum(a != b for a, b in zip(after, before, strict=True)) < len(before) / 5
    assert ask("adj_factor", PARAMS)["data"]["items"] == after
    server.faults.clear()
    assert ask("adj_factor", PARAMS)["data"]["items"] == before


def test_duplicate_rows__set__doubles_rows(server: SandboxServer, ask: Ask) -> None:
    server.faults.set("daily", "duplicate_rows")
    items = ask("daily", PARAMS)["data"]["items"]
    assert len(items) > len({row[0] for row in items})
