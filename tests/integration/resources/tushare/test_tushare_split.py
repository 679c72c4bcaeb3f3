"""A page that came back full is never believed: narrower calls replace it, or the fetch fails loudly."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from resources.tushare.client import TushareClient
from resources.tushare.errors import BadAnswer, Truncated
from resources.tushare.request import Request
from tests.integration.resources.http.wire_server import WireServer
from tests.integration.resources.tushare.conftest import rows_reply

CAP = 10
FIELDS = ["ts_code", "close"]
SCHEMA = pa.schema([("ts_code", pa.string()), ("close", pa.float64())])
REQUEST = Request("daily", {"trade_date": "20261117"}, SCHEMA, cap=CAP)
STOCKS = [f"{code:02d}" for code in range(37)]


def capped_source(stocks: Sequence[str] = STOCKS) -> Any:
    """Serves stocks by `prefix`, at most CAP of them, and says nothing about the rest."""

    def answer(call: Any) -> Any:
        prefix = call.payload["params"].get("prefix", "")
        found = [[stock, float(stock)] for stock in stocks if stock.startswith(prefix)]
        return rows_reply(FIELDS, found[:CAP])

    return answer


def by_next_digit(params: Mapping[str, str]) -> list[dict[str, str]]:
    prefix = params.get("prefix", "")
    return [{**params, "prefix": f"{prefix}{digit}"} for digit in range(10)] if len(prefix) < 2 else []


def test_a_full_page_is_split_until_no_page_is_full(server: WireServer, client: TushareClient) -> None:
    server.answer = capped_source()
    table = client.fetch(REQUEST, narrow=by_next_digit)
    assert table.schema.equals(SCHEMA)
    assert table["ts_code"].to_pylist() == STOCKS
    assert len(server.calls) == 1 + 10 + 3 * 10, (
        "prefixes 0, 1 and 2 hold ten stocks each, so they are full too"
    )
    assert all(call.payload["params"]["trade_date"] == "20261117" for call in server.calls)


def test_a_source_that_says_it_has_more_is_believed(server: WireServer, client: TushareClient) -> None:
    def answer(call: Any) -> Any:
        prefix = call.payload["params"].get("prefix")
        return rows_reply(FIELDS, [[prefix or "1", 1.0]], has_more=prefix is None)

    server.answer = answer
    table = client.fetch(REQUEST, narrow=lambda _: [{"prefix": "1"}, {"prefix": "2"}])
    assert table["ts_code"].to_pylist() == ["1", "2"]


def test_a_full_page_without_a_way_to_narrow_it_is_permanent(
    server: WireServer, client: TushareClient
) -> None:
    server.answer = capped_source()
    with pytest.raises(Truncated, match=r"daily: the answer to .*20261117.* is full \(10 rows or more\)"):
        client.fetch(REQUEST)
    with pytest.raises(Truncated, match="no narrower way to ask"):
        client.fetch(REQUEST, narrow=lambda _: [])


def test_asking_the_same_again_is_not_narrower(server: WireServer, client: TushareClient) -> None:
    server.answer = capped_source()
    with pytest.raises(Truncated):
        client.fetch(REQUEST, narrow=lambda params: [dict(params)])
    assert len(server.calls) == 1
    with pytest.raises(Truncated):
        client.fetch(REQUEST, narrow=lambda params: [{**params, "n": params.get("n", "") + "x"}])
    assert len(server.calls) < 30, "nor is a way that never gets smaller"


def test_overlapping_parts_leave_no_duplicates(server: WireServer, client: TushareClient) -> None:
    def answer(call: Any) -> Any:
        part = call.payload["params"].get("part")
        rows = [["00", 1.0], ["01", None], *[[f"{n:02d}", float(n)] for n in range(2, CAP)]]
        return rows_reply(FIELDS, {"a": rows[:6], "b": rows[1:7], "c": rows[6:]}.get(part, rows))

    server.answer = answer
    parts = [{"part": "a"}, {"part": "b"}, {"part": "b"}, {"part": "c"}]
    table = client.fetch(REQUEST, narrow=lambda _: parts)
    assert table["ts_code"].to_pylist() == [f"{n:02d}" for n in range(CAP)]
    assert table["close"].null_count == 1
    assert len(server.calls) == 4


def test_parts_that_miss_rows_of_the_full_page_are_refused(server: WireServer, client: TushareClient) -> None:
    server.answer = capped_source()
    with pytest.raises(BadAnswer, match="has 5 rows that its narrower parts lack"):
        client.fetch(REQUEST, narrow=lambda _: [{"prefix": f"0{digit}"} for digit in range(5)])
