"""The protocol over a real socket, and what a server on a network has to bear."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from domain.shared.error import InvalidInput
from sandbox.endpoints import ENDPOINTS, Endpoint
from sandbox.exchange import Exchange
from sandbox.server import SandboxServer
from tests.oracles.exchange import true_rows

Ask = Callable[..., Any]
DAY = date(2026, 11, 17)
TEXT = DAY.strftime("%Y%m%d")
BY_DAY = [name for name, endpoint in ENDPOINTS.items() if endpoint.by_day]


def typed(endpoint: Endpoint, data: Any) -> pa.Table:
    """An answer as an Arrow table, made as a reader of the protocol would make it."""
    columns = []
    for at, name in enumerate(data["fields"]):
        values = [row[at] for row in data["items"]]
        field = endpoint.field(name)
        assert field is not None
        kind = field.type
        if kind == "day":
            days = [None if v is None else date(int(v[:4]), int(v[4:6]), int(v[6:])) for v in values]
            columns.append(pa.array(days, pa.date32()))
        else:
            arrow = {"text": pa.string(), "number": pa.float64(), "count": pa.int64()}[kind]
            columns.append(pa.array(values, arrow))
    return pa.table(columns, names=data["fields"])


# Truth ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", BY_DAY)
def test_serve__a_day__is_the_truth(ask: Ask, exchange: Exchange, api: str) -> None:
    data = ask(api, {"trade_date": TEXT})["data"]
    truth = true_rows(exchange, api, DAY)
    assert not data["has_more"]
    order = [("ts_code", "ascending"), ("suspend_type", "ascending")][: 2 if api == "suspend_d" else 1]
    assert typed(ENDPOINTS[api], data).sort_by(order) == truth.sort_by(order)


def test_serve__stock_lists__are_the_truth(ask: Ask, exchange: Exchange) -> None:
    endpoint = ENDPOINTS["stock_basic"]
    every = ",".join(field.name for field in endpoint.fields)
    parts = [typed(endpoint, ask("stock_basic", {"list_status": s}, every)["data"]) for s in "LDPG"]
    served = pa.concat_tables(parts).sort_by("ts_code")
    assert served == true_rows(exchange, "stock_basic", date(2026, 11, 18))


@pytest.mark.parametrize("name", ["SSE", "SZSE", "BSE"])
def test_serve__calendar__is_the_truth(ask: Ask, exchange: Exchange, name: str) -> None:
    asked = {"exchange": name, "start_date": "20260101", "end_date": "20261231"}
    served = typed(ENDPOINTS["trade_cal"], ask("trade_cal", asked)["data"]).sort_by("cal_date")
    truth = true_rows(exchange, "trade_cal", DAY)
    assert served == truth.filter(pa.compute.equal(truth["exchange"], name)).sort_by("cal_date")


# Protocol -------------------------------------------------------------------------------------------


def test_serve__answer__has_tushares_shape(ask: Ask) -> None:
    answer = ask("daily", {"trade_date": TEXT, "limit": 2}, "ts_code,trade_date,close")
    assert list(answer) == ["request_id", "code", "msg", "data"]
    assert (answer["code"], answer["msg"]) == (0, "")
    assert answer["data"]["fields"] == ["ts_code", "trade_date", "close"]
    code, day, close = answer["data"]["items"][0]
    assert (code, day) == ("000001.SZ", TEXT)
    assert isinstance(close, float)
    assert answer["data"]["has_more"] is True


def test_stock_client__any_answer__reads_it(server: SandboxServer, exchange: Exchange) -> None:
    from tushare.pro.client import DataApi

    client = DataApi("sandbox-token", timeout=20)
    client._DataApi__http_url = server.url
    frame = client.daily(trade_date=TEXT)
    assert frame["ts_code"].tolist() == true_rows(exchange, "daily", DAY)["ts_code"].to_pylist()
    with pytest.raises(Exception, match="请指定正确的接口名"):
        client.weekly(trade_date=TEXT)


@pytest.mark.parametrize(
    ("api", "params", "token", "code", "message"),
    [
        ("daily", {}, "wrong", 40101, "您的token不对，请确认。"),
        ("nothing", {}, "wrong", 40101, "您的token不对，请确认。"),
        ("nothing", {}, "sandbox-token", -2001, "请指定正确的接口名"),
        ("daily_basic", {"trade_date": TEXT}, "sandbox-120", 2002, "抱歉，您没有访问该接口的权限"),
        ("daily", {"trade_date": "yesterday"}, "sandbox-token", -2001, "参数校验失败"),
    ],
)
def test_serve__refusal__is_http_200_with_a_code(
    ask: Ask, api: str, params: dict[str, str], token: str, code: int, message: str
) -> None:
    answer = ask(api, params, token=token)
    assert answer["code"] == code
    assert answer["msg"].startswith(message)
    assert answer["data"] is None


def test_clock__moved__decides_what_is_visible(ask: Ask, server: SandboxServer) -> None:
    today = {"trade_date": "20261118"}
    assert ask("daily", today)["data"]["items"]
    for moment, expected in (("2026-11-18T15:29:59", False), ("2026-11-18T15:30", True), (None, True)):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("POST", "/_sandbox/clock", json.dumps({"now": moment}))
        assert connection.getresponse().status == 200
        connection.close()
        answer = ask("daily", today)
        assert answer["code"] == 0
        assert bool(answer["data"]["items"]) == expected


def test_calls__counted__have_no_tokens(ask: Ask, connection: http.client.HTTPConnection) -> None:
    ask("daily", {"trade_date": TEXT}, token="sandbox-unlimited")
    ask("daily", {"trade_date": TEXT}, token="not-a-real-token")
    ask("suspend_d", {"trade_date": TEXT, "token": "not-a-real-token"})
    connection.request("GET", "/_sandbox/calls")
    text = connection.getresponse().read().decode()
    seen = json.loads(text)
    assert seen["counters"]["daily"]["calls"] == 2
    assert seen["counters"]["daily"]["refused"] == 1
    assert [call["code"] for call in seen["recent"]] == [0, 40101, 0]
    assert "not-a-real-token" not in text
    assert "sandbox-unlimited" not in text


# Endurance ------------------------------------------------------------------------------------------


def test_serve__client_hangs_up__harms_nobody(
    server: SandboxServer, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    asked = json.dumps(
        {"api_name": "daily", "token": "sandbox-token", "params": {"trade_date": TEXT}}
    ).encode()
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(asked)
    for sent in (b"", b"POST / HT", head, head + asked[:10], head + asked):
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        raw.sendall(sent)
        raw.close()
    assert ask("daily", {"trade_date": TEXT})["code"] == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_serve__port_in_use__is_one_error(server: SandboxServer, exchange: Exchange) -> None:
    with pytest.raises(InvalidInput, match=f"cannot listen on 127.0.0.1:{server.port}") as caught:
        SandboxServer(exchange, port=server.port)
    assert caught.value.reason_code == "port_in_use"
