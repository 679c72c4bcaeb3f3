"""Fault rules: when they strike, in which order, and what they do to data."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
import yaml

from domain.shared.error import InvalidInput
from sandbox import faults
from sandbox.endpoints import ENDPOINTS
from sandbox.faults import Fault, Faults
from sandbox.query import Query, parse

DAY = date(2026, 11, 17)


def query(api: str = "daily", **params: str) -> Query:
    return parse(ENDPOINTS[api], params or {"trade_date": "20261117"}, "")


def kinds(rules: Faults, asked: Query) -> list[str]:
    return [rule.kind for rule in rules.strike(asked)]


def test_strike__rules_with_times__fire_one_after_another_as_often_as_they_say() -> None:
    script = [Fault("*", "http_502", times=2), Fault("daily", "reset", times=1), Fault("daily", "stall")]
    rules = Faults(script)
    assert [kinds(rules, query()) for _ in range(4)] == [["http_502"], ["http_502"], ["reset"], ["stall"]]
    assert rules.clear("daily", "stall") == 1
    assert kinds(rules, query()) == []


def test_strike__data_faults__come_together_and_before_another() -> None:
    rules = Faults([Fault("daily", "partial_day"), Fault("daily", "revised_day"), Fault("daily", "reset")])
    assert kinds(rules, query()) == ["partial_day", "revised_day", "reset"]


def test_strike__other_api_or_day__is_left_alone() -> None:
    rules = Faults([Fault("daily", "http_500", day=DAY)])
    assert kinds(rules, query("adj_factor")) == []
    assert kinds(rules, query(trade_date="20261116")) == []
    assert kinds(rules, query(ts_code="000001.SZ", start_date="20261101")) == ["http_500"]
    assert kinds(rules, query(ts_code="000001.SZ", end_date="20261101")) == []


def test_strike__any__hits_the_share_in_every_way_whatever_the_order_of_the_calls() -> None:
    days = [query(trade_date=f"202611{day:02}") for day in range(1, 31)] * 40
    one, other = (Faults([Fault("*", "any", rate=0.25, seed=3)]) for _ in range(2))
    struck = [kinds(one, asked) for asked in days]
    backwards = {asked.trade_date: kinds(other, asked) for asked in reversed(days[:30])}
    counts = Counter(kind for found in struck for kind in found)
    assert set(counts) == set(faults.WAYS)
    assert 0.22 < sum(counts.values()) / len(days) < 0.28
    assert backwards == {asked.trade_date: found for asked, found in zip(days[:30], struck, strict=False)}


def test_strike__rate__hits_the_same_calls_for_the_same_seed() -> None:
    def pattern(seed: int) -> list[bool]:
        rules = Faults([Fault("daily", "http_503", rate=0.3, seed=seed)])
        return [bool(rules.strike(query())) for _ in range(400)]

    assert pattern(7) == pattern(7)
    assert pattern(7) != pattern(8)
    assert 80 < sum(pattern(7)) < 160


@pytest.mark.parametrize(
    "raw",
    [
        {"api": "daily"},
        {"api": "daily", "kind": "explode"},
        {"api": "weekly", "kind": "stall"},
        {"api": "daily", "kind": "stall", "rate": 2},
        {"api": "daily", "kind": "stall", "day": "tomorrow"},
        {"api": "daily", "kind": "stall", "often": 3},
        "daily",
    ],
)
def test_from_json__wrong_rule__is_refused_with_a_remedy(raw: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Fault.from_json(raw)
    assert caught.value.remedy


def test_from_json__to_json__is_the_same_rule() -> None:
    rule = Fault("daily", "partial_day", day=DAY, times=3, keep=0.25, seed=9)
    assert Fault.from_json(rule.to_json()) == rule


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_load_script__json_or_yaml__reads_the_rules(tmp_path: Path, suffix: str) -> None:
    rules = [{"api": "daily", "kind": "stall", "seconds": 1}, {"api": "*", "kind": "html", "day": str(DAY)}]
    file = tmp_path / f"script.{suffix}"
    file.write_text((json.dumps if suffix == "json" else yaml.safe_dump)(rules))
    assert faults.load_script(file) == [
        Fault("daily", "stall", seconds=1.0),
        Fault("*", "html", day=DAY),
    ]
