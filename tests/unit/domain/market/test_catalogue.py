"""The market catalogue: what its rows say, and how it refuses a row that says something else."""

from __future__ import annotations

import copy
from datetime import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import domain.market.catalogue as module
from domain.market.catalogue import catalogue, parse
from domain.market.plan import judge_day
from domain.market.tables import all_tables
from domain.shared.error import InvalidInput
from domain.shared.table import ALL
from tests.unit.domain.market.world import LISTED, RULES, STOCKS, TUESDAY, Market, shanghai_time

PACKAGED = yaml.safe_load(Path(module.__file__).with_name("catalogue.yaml").read_text(encoding="utf-8"))

NEW_ROW = {
    "endpoint": "moneyflow",
    "table": "normalized_moneyflow",
    "title": "Money flow",
    "description": "Bought and sold by size of order.",
    "published": "19:00",
    "points": 2000,
    "key": ["trade_date", "ts_code"],
    "expected": "listed_less_suspended",
    "columns": {
        "trade_date": ["date!", "", "Trading day"],
        "ts_code": ["string!", "", "Stock code"],
        "net_mf_amount": ["float64", "10 thousand CNY", "Net amount"],
    },
}


def with_row(**changes: Any) -> str:
    document = copy.deepcopy(PACKAGED)
    row = {**copy.deepcopy(NEW_ROW), **changes}
    document["daily"].append({name: value for name, value in row.items() if value is not None})
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False)


def columns(**changes: Any) -> dict[str, Any]:
    return {name: spec for name, spec in {**NEW_ROW["columns"], **changes}.items() if spec is not None}  # type: ignore[dict-item]


# What the packaged catalogue says


def test_catalogue__keys__are_those_of_the_design() -> None:
    assert {e.name: e.table.key for e in catalogue().endpoints} == {
        "normalized_trade_cal": ("exchange", "cal_date"),
        "normalized_stock_basic": ("ts_code",),
        "normalized_daily": ("trade_date", "ts_code"),
        "normalized_adj_factor": ("trade_date", "ts_code"),
        "normalized_daily_basic": ("trade_date", "ts_code"),
        "suspensions": ("trade_date", "ts_code", "suspend_timing"),
    }


def test_catalogue__columns__have_descriptions_and_units() -> None:
    for table in all_tables(catalogue()):
        for column in table.columns:
            assert column.description, f"{table.name}.{column.name}"
            if column.type == pa.float64():
                assert column.unit, f"{table.name}.{column.name}"


def test_catalogue__keys__are_never_null() -> None:
    for table in all_tables(catalogue()):
        fields = {c.name: c for c in table.columns}
        for name in {*table.partition_columns, *table.key} & {
            "trade_date",
            "ts_code",
            "year",
            "cal_date",
        }:
            assert not fields[name].nullable, f"{table.name}.{name}"


def test_source_schema__year_table__lacks_our_own_column() -> None:
    assert "year" not in catalogue().calendar.source_schema.names
    for endpoint in (*catalogue().daily, catalogue().stocks):
        assert endpoint.source_schema.equals(endpoint.table.schema, check_metadata=True)


# A new table is one row


def test_parse__one_more_row__is_one_more_table_with_its_gap_rule() -> None:
    found = parse(with_row())
    endpoint = found.by_name("normalized_moneyflow")
    assert endpoint in found.daily
    assert endpoint.published == time(19)
    assert endpoint.source == "tushare.moneyflow"
    assert endpoint.table in all_tables(found)
    market = Market(shanghai_time("2026-11-17 19:00"), catalogue=found)
    market.put(STOCKS, ALL, LISTED)
    states = {v.table: v.state for v in judge_day(found, TUESDAY, market.observed, market.now, RULES)}
    assert states["normalized_moneyflow"] == "missing"
    early = judge_day(found, TUESDAY, market.observed, shanghai_time("2026-11-17 18:59"), RULES)
    assert {v.table: v.state for v in early}["normalized_moneyflow"] == "waiting"


def test_parse__field_left_out__is_the_careful_choice() -> None:
    endpoint = parse(with_row(expected=None)).by_name("normalized_moneyflow")
    assert (endpoint.expected, endpoint.floor, endpoint.may_be_empty) == ("unknown", 0, False)


def test_parse__columns__have_the_types_units_and_nulls_of_the_row() -> None:
    schema = parse(with_row()).by_name("normalized_moneyflow").table.schema
    assert schema.types == [pa.date32(), pa.string(), pa.float64()]
    assert [f.nullable for f in schema] == [False, False, True]
    assert schema.field("net_mf_amount").metadata == {
        b"unit": b"10 thousand CNY",
        b"description": b"Net amount",
    }


# Refusals name the row and the field


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"title": None}, "missing title"),
        ({"points": None, "key": None}, "missing key, points"),
        ({"pulbished": "16:00"}, "unknown pulbished"),
        ({"expected": "most"}, "expected is 'most'"),
        ({"key": ["trade_date", "code"]}, "key columns ['code'] are not among its columns"),
        ({"published": 960}, "published is 960"),
        ({"columns": columns(net_mf_amount=["money", "", "Net"])}, "column net_mf_amount: type 'money'"),
        ({"columns": columns(net_mf_amount=["float64", "Net"])}, "column net_mf_amount: ['float64', 'Net']"),
    ],
)
def test_parse__wrong_row__is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(with_row(**changes))
    assert caught.value.message.startswith("market catalogue, row normalized_moneyflow")
    assert words in caught.value.message
