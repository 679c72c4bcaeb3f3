"""Fault rules: when they strike, in which order, and what they do to data."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from domain.shared.error import InvalidInput
from sandbox import faults
from sandbox.endpoints import ENDPOINTS
from sandbox.exchange import Exchange
from sandbox.faults import Fault, Faults
from sandbox.market.market import Columns
from sandbox.query import Query, parse

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
DAY = date(2026, 11, 17)


def query(api: str = "daily", **params: str) -> Query:
    return parse(ENDPOINTS[api], params or {"trade_date": "20261117"}, "")


def kinds(rules: Faults, asked: Query) -> list[str]:
    return [rule.kind for rule in rules.strike(asked)]


def test_a_rule_strikes_as_often_as_it_says() -> None:
    rules = Faults([Fault("daily", "http_500", times=2)])
    assert [kinds(rules, query()) for _ in range(3)] == [["http_500"], ["http_500"], []]


def test_a_rule_without_times_strikes_until_it_is_cleared() -> None:
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


def test_a_rate_strikes_the_same_calls_for_the_same_seed() -> None:
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


# Data -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def columns(exchange: Exchange) -> Columns:
    return exchange.rows(query(), NOW).columns


def spoilt(columns: Columns, kind: str, **values: object) -> Columns:
    return faults.apply(Fault.from_json({"api": "daily", "kind": kind, **values}), query(), columns)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.95, 1.0])
def test_a_partial_day_keeps_the_same_part_each_time(columns: Columns, keep: float) -> None:
    once, twice = spoilt(columns, "partial_day", keep=keep), spoilt(columns, "partial_day", keep=keep)
    assert once["ts_code"].tolist() == twice["ts_code"].tolist()
    assert len(once["ts_code"]) / len(columns["ts_code"]) == pytest.approx(keep, abs=0.02)


def test_less_is_kept_of_the_same_rows(columns: Columns) -> None:
    half = set(spoilt(columns, "partial_day", keep=0.5)["ts_code"].tolist())
    assert half < set(spoilt(columns, "partial_day", keep=0.8)["ts_code"].tolist())


def test_an_empty_day_has_no_rows(columns: Columns) -> None:
    assert len(spoilt(columns, "empty_day")["ts_code"]) == 0


def test_another_day_in_the_same_answer_is_untouched(columns: Columns) -> None:
    assert len(spoilt(columns, "empty_day", day="2026-11-16")["ts_code"]) == len(columns["ts_code"])


def test_a_revised_day_has_other_numbers_in_some_rows_only(columns: Columns) -> None:
    revised = spoilt(columns, "revised_day")
    changed = revised["vol"] != columns["vol"]
    assert 0.02 < changed.mean() < 0.1
    assert revised["ts_code"].tolist() == columns["ts_code"].tolist()
    assert np.array_equal(revised["close"], columns["close"])
    assert np.array_equal(revised["vol"], spoilt(columns, "revised_day")["vol"])
    assert not np.array_equal(revised["vol"], spoilt(columns, "revised_day", seed=1)["vol"])


def test_duplicated_rows_are_whole_rows(columns: Columns) -> None:
    doubled = spoilt(columns, "duplicate_rows")
    codes, counts = np.unique(doubled["ts_code"], return_counts=True)
    assert set(codes) == set(columns["ts_code"])
    assert counts.max() == 2
    assert 0 < (counts == 2).mean() < 0.05


@pytest.mark.parametrize("kind", ["revised_day", "duplicate_rows"])
def test_even_a_single_row_can_be_spoilt(columns: Columns, kind: str) -> None:
    one = {name: values[:1] for name, values in columns.items()}
    after = spoilt(one, kind)
    assert {name: values.tolist() for name, values in after.items()} != {
        name: values.tolist() for name, values in one.items()
    }
