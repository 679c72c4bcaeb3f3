"""The body of an answer becomes exactly the table that was asked for, or an error that names the culprit."""

import json
from datetime import date

import pyarrow as pa
import pytest

from resources.tushare.decode import read_answer, read_rows, to_table
from resources.tushare.errors import BadAnswer, SourceDown
from resources.tushare.request import TushareRequest


def as_is(text: str, /) -> str:
    return text[:200]


def body_of(data: object, **envelope: object) -> bytes:
    return json.dumps({"code": 0, "msg": "", "data": data, **envelope}).encode()


def table_of(schema: pa.Schema, fields: list[str], items: list[object]) -> pa.Table:
    return decoded(schema, body_of({"fields": fields, "items": items}))


def decoded(schema: pa.Schema, body: bytes) -> pa.Table:
    answer = read_answer("daily", body, as_is)
    return to_table(TushareRequest("daily", {}, schema), read_rows("daily", answer.data, as_is), as_is)


def column(wanted: pa.DataType, *values: object) -> list[object]:
    table = table_of(pa.schema([("x", wanted)]), ["x"], [[value] for value in values])
    return list(table["x"].to_pylist())


def test_decode__a_day__is_typed_columns_in_the_order_requested() -> None:
    schema = pa.schema([("trade_date", pa.date32()), ("ts_code", pa.string()), ("close", pa.float64())])
    table = table_of(
        schema,
        ["ts_code", "trade_date", "close", "surplus"],
        [["600000.SH", "20261117", 10.5, "?"], ["000001.SZ", "20261117", 11, "?"]],
    )
    assert table.schema.equals(schema)
    assert table.to_pylist() == [
        {"trade_date": date(2026, 11, 17), "ts_code": "600000.SH", "close": 10.5},
        {"trade_date": date(2026, 11, 17), "ts_code": "000001.SZ", "close": 11.0},
    ]


@pytest.mark.parametrize(
    ("wanted", "raw", "read"),
    [
        (
            pa.float64(),
            [1.5, 2, None, "", "3.25", "NaN", "-1e3", 0],
            [1.5, 2.0, None, None, 3.25, None, -1000.0, 0.0],
        ),
        (pa.int64(), [1, None, "2", 3.0, "", -4], [1, None, 2, 3, None, -4]),
        (pa.date32(), ["20240229", None, "", 19901219], [date(2024, 2, 29), None, None, date(1990, 12, 19)]),
        (pa.bool_(), [1, 0, None, "1", "0", "", True], [True, False, None, True, False, None, True]),
        (pa.string(), ["平安银行", None, ""], ["平安银行", None, ""]),
    ],
)
def test_decode__values__are_read_as_documented(
    wanted: pa.DataType, raw: list[object], read: list[object]
) -> None:
    assert column(wanted, *raw) == read


@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        (pa.float64(), 1.5, "n/a"),
        (pa.float64(), 1.5, "1_000"),
        (pa.float64(), 1.5, "inf"),
        (pa.float64(), 1.5, [1]),
        (pa.int64(), 1, 1.5),
        (pa.int64(), 1, "1.5"),
        (pa.int64(), 1, 2**63),
        (pa.date32(), "20261117", "20261131"),
        (pa.date32(), "20261117", "2026-11-17"),
        (pa.date32(), "20261117", "2026111"),
        (pa.date32(), "20261117", {"day": 1}),
        (pa.bool_(), 1, 2),
        (pa.bool_(), 1, "Y"),
        (pa.string(), "a", 7),
    ],
)
def test_decode__unreadable_value__is_named_with_its_field(
    wanted: pa.DataType, good: object, bad: object
) -> None:
    with pytest.raises(BadAnswer) as caught:
        column(wanted, good, None, bad)
    assert caught.value.message.startswith(f"daily: x should be {wanted}, got ")
    assert repr(bad)[:20] in caught.value.message
    assert caught.value.retry_in_run
    assert caught.value.__context__ is None


def test_decode__bare_nan__is_null_and_infinity_is_refused() -> None:
    schema = pa.schema([("x", pa.float64())])
    body = body_of({"fields": ["x"], "items": [[1.5], ["%"]]})
    assert decoded(schema, body.replace(b'"%"', b"NaN"))["x"].to_pylist() == [1.5, None]
    for infinity in (b"Infinity", b"-Infinity", b"1e999"):
        with pytest.raises(BadAnswer, match="x should be double"):
            decoded(schema, body.replace(b'"%"', infinity))


def test_decode__required_field_empty__is_refused() -> None:
    schema = pa.schema([pa.field("ts_code", pa.string(), nullable=False)])
    with pytest.raises(BadAnswer, match="ts_code is empty in 1 of 2 rows"):
        table_of(schema, ["ts_code"], [["600000.SH"], [None]])


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"fields": ["x"]},
        {"items": []},
        {"fields": "x", "items": []},
        {"fields": ["x", "x"], "items": []},
        {"fields": [1], "items": []},
        {"fields": ["x"], "items": [[1.0], [1.0, 2.0]]},
        {"fields": ["x"], "items": [[1.0], []]},
        {"fields": ["x"], "items": [[1.0], "y"]},
        {"fields": ["x"], "items": [{"x": 1.0}]},
    ],
)
def test_decode__wrong_shape__is_a_bad_answer(data: object) -> None:
    with pytest.raises(BadAnswer, match=r"^daily: "):
        decoded(pa.schema([("x", pa.float64())]), body_of(data))


@pytest.mark.parametrize("body", [b"[]", b"null", b'"x"', b'{"data": {}}'])
def test_decode__no_envelope__is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer, match="no Tushare envelope"):
        read_answer("daily", body, as_is)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "no readable JSON (0 bytes)"),
        (b'{"code": 0, "data": {"fields": ["x"], "ite', "no readable JSON (42 bytes)"),
        (b"  <html><h1>502 Bad Gateway</h1></html>", "a web page instead of JSON"),
        (b"\xff\xfe", "no readable JSON"),
        (b"[" * 100_000, "no readable JSON"),
    ],
)
def test_decode__no_json__is_source_down(body: bytes, what: str) -> None:
    with pytest.raises(SourceDown) as caught:
        read_answer("daily", body, as_is)
    assert what in caught.value.message
    assert caught.value.__context__ is None
