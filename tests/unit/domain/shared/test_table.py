"""A lake table and the version of a partition, as values."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from domain.shared.table import ABSENT, Column, Table, Version

PRICES = Table(
    name="market.normalized_daily",
    description="Prices",
    columns=(
        Column("trade_date", pa.date32(), "Trading day", nullable=False),
        Column("close", pa.float64(), "Closing price", unit="CNY"),
    ),
    key=("trade_date",),
    partition_kind="day",
    partition_columns=("trade_date",),
)


def test_schema__of_a_table__has_columns_types_and_nulls_in_order() -> None:
    assert PRICES.schema.names == ["trade_date", "close"]
    assert PRICES.schema.types == [pa.date32(), pa.float64()]
    assert [f.nullable for f in PRICES.schema] == [False, True]


def test_schema__of_a_table__has_descriptions_and_units() -> None:
    assert PRICES.schema.field("close").metadata == {b"description": b"Closing price", b"unit": b"CNY"}
    assert PRICES.schema.field("trade_date").metadata == {b"description": b"Trading day"}


def test_version__corrupt__equals_no_other() -> None:
    for healthy in (Version(3, "abc"), ABSENT):
        assert replace(healthy, corrupt=True) != healthy


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (Version(3, "abc"), "3:abc"),
        (ABSENT, "0:"),
        (Version(0, "", corrupt=True), "corrupt"),
        (Version(3, "abc", corrupt=True), "corrupt"),
        (Version(0, "", unavailable="x cannot be read now"), "unavailable"),
    ],
)
def test_version__as_text__is_readable(version: Version, words: str) -> None:
    assert str(version) == words
