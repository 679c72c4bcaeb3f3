"""Fault rules: when they strike, in which order, and what they do to data."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

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


def test_a_rule_fires_as_often_as_it_says() -> None:
    rules = Faults([Fault("daily", "http_500", times=2)])
    assert [kinds(rules, query()) for _ in range(3)] == [["http_500"], ["http_500"], []]


def test_a_rule_without_times_fires_until_it_is_cleared() -> None:
    rules = Faults([Fault("daily", "stall")])
    assert all(kinds(rules, query()) for _ in range(20))
    assert rules.clear("daily", "stall") == 1
    assert kinds(rules, query()) == []


def test_rules_are_a_script() -> None:
    script = [
        Fault("*", "http_502", times=2),
        Fault("daily", "reset", times=1),
        Fault("daily", "truncate", times=1),
    ]
    rules = Faults(script)
    assert [kinds(rules, query()) for _ in range(5)] == [
        ["http_502"],
        ["http_502"],
        ["reset"],
        ["truncate"],
        [],
    ]


def test_data_faults_strike_together_and_before_one_other() -> None:
    rules = Faults([Fault("daily", "partial_day"), Fault("daily", "revised_day"), Fault("daily", "reset")])
    assert kinds(rules, query()) == ["partial_day", "revised_day", "reset"]


def test_a_rule_leaves_other_apis_and_days_alone() -> None:
    rules = Faults([Fault("daily", "http_500", day=DAY)])
    assert kinds(rules, query("adj_factor")) == []
    assert kinds(rules, query(trade_date="20261116")) == []
    assert kinds(rules, query(ts_code="000001.SZ", start_date="20261101")) == ["http_500"]
    assert kinds(rules, query(ts_code="000001.SZ", end_date="20261101")) == []


def test_a_rate_fires_the_same_calls_for_the_same_seed() -> None:
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
def test_a_rule_that_makes_no_sense_is_refused_with_a_remedy(raw: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Fault.from_json(raw)
    assert caught.value.remedy


def test_a_rule_survives_json() -> None:
    rule = Fault("daily", "partial_day", day=DAY, times=3, keep=0.25, seed=9)
    assert Fault.from_json(rule.to_json()) == rule


@pytest.mark.parametrize("name", ["script.json", "script.yaml"])
def test_a_script_is_read_from_json_and_yaml(tmp_path: Path, name: str) -> None:
    text = {
        "script.json": json.dumps(
            [
                {"api": "daily", "kind": "stall", "seconds": 1},
                {"api": "*", "kind": "html", "day": "2026-11-17"},
            ]
        ),
        "script.yaml": "- {api: daily, kind: stall, seconds: 1}\n- {api: '*', kind: html, day: 2026-11-17}\n",
    }
    (tmp_path / name).write_text(text[name])
    assert faults.load_script(tmp_path / name) == [
        Fault("daily", "stall", seconds=1.0),
        Fault("*", "html", day=DAY),
    ]
