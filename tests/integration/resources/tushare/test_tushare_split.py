"""A page that came back full is never believed: narrower calls replace it, or the fetch fails loudly."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from resources.tushare.client import TushareClient
from resources.tushare.errors import BadAnswer, Truncated
from resources.tushare.request import TushareRequest
from tests.integration.resources.http.wire_server import WireServer
from tests.integration.resources.tushare.conftest import rows_reply

CAP = 10
FIELDS = ["ts_code", "close"]
SCHEMA = pa.schema([("ts_code", pa.string()), ("close", pa.float64())])
REQUEST = TushareRequest("daily", {"trade_date": "20261117"}, SCHEMA, cap=CAP)
STOCKS = [f"{code:02d}" for code in range(37)]


def capped_source(stocks: Sequence[str] = STOCKS) -> Any:
    """Serves stocks by `prefix`, at most CAP of them, and says nothing about the rest."""

    def answer(call: Any) -> Any:
        prefix = call.payload["params"].get("prefix", "")
        found = [[stock, float(stock)] for stock in stocks if stock.startswith(prefix)]
        return rows_reply(FIELDS, found[:CAP])

    return answer


def parts(*prefixes: str) -> list[dict[str, str]]:
    return [{**REQUEST.params, "prefix": prefix} for prefix in prefixes]


def test_fetch__full_page__is_replaced_by_its_parts(server: WireServer, client: TushareClient) -> None:
    stocks = [f"{code:02d}" for code in range(27) if code % 10 < 9]
    server.answer = capped_source(stocks)
    table = client.fetch(REQUEST, narrow=lambda: parts("0", "1", "2"))
    assert table.schema.equals(SCHEMA)
    assert table["ts_code"].to_pylist() == stocks
    assert all(call.payload["params"]["trade_date"] == "20261117" for call in server.calls)


@pytest.mark.parametrize("narrower", [[], ["0"], ["0", "1"]])
def test_fetch__full_page_and_no_narrower_way__is_permanent(
    server: WireServer, client: TushareClient, narrower: list[str]
) -> None:
    server.answer = capped_source()
    with pytest.raises(Truncated, match=r"daily: the answer to .*20261117.* is full \(10 rows or more\)"):
        client.fetch(REQUEST, narrow=lambda: parts(*narrower))


def test_fetch__source_has_more__is_a_full_page(server: WireServer, client: TushareClient) -> None:
    def answer(call: Any) -> Any:
        prefix = call.payload["params"].get("prefix")
        return rows_reply(FIELDS, [[prefix or "1", 1.0]], has_more=prefix is None)

    server.answer = answer
    table = client.fetch(REQUEST, narrow=lambda: parts("1", "2"))
    assert table["ts_code"].to_pylist() == ["1", "2"]


def test_fetch__parts_overlap__has_no_duplicates(server: WireServer, client: TushareClient) -> None:
    def answer(call: Any) -> Any:
        part = call.payload["params"].get("part")
        rows = [["00", 1.0], ["01", None], *[[f"{n:02d}", float(n)] for n in range(2, CAP)]]
        return rows_reply(FIELDS, {"a": rows[:6], "b": rows[1:7], "c": rows[6:]}.get(part, rows))

    server.answer = answer
    table = client.fetch(REQUEST, narrow=lambda: [{"part": part} for part in "abc"])
    assert table["ts_code"].to_pylist() == [f"{n:02d}" for n in range(CAP)]
    assert table["close"].null_count == 1
    assert len(server.calls) == 4


def test_fetch__parts_lack_rows_of_the_full_page__is_refused(
    server: WireServer, client: TushareClient
) -> None:
    server.answer = capped_source()
    with pytest.raises(BadAnswer, match="has 5 rows that its narrower parts lack"):
        client.fetch(REQUEST, narrow=lambda: parts("00", "01", "02", "03", "04"))
