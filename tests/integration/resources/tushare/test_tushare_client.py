"""Calls of the Tushare client: what is sent, what comes back, and which type each failure has."""

import copy
from contextlib import closing
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from domain.shared.error import PermanentRunnerError, TransientResourceError
from resources.tushare.client import TushareClient
from resources.tushare.errors import (
    NotPermitted,
    RateLimited,
    SourceDown,
    SourceFails,
    TokenRefused,
    WrongAddress,
)
from resources.tushare.pace import Pacer
from resources.tushare.request import TushareRequest
from tests.integration.resources.http.wire_server import PATIENT, SECRET, Reply, WireServer
from tests.integration.resources.tushare.conftest import client_of, refusal_reply, rows_reply

SCHEMA = pa.schema([("ts_code", pa.string()), ("trade_date", pa.date32()), ("close", pa.float64())])
DAILY = TushareRequest("daily", {"trade_date": "20261117"}, SCHEMA)
FIELDS = ["ts_code", "trade_date", "close"]
ITEMS: list[list[Any]] = [["600000.SH", "20261117", 10.25], ["000001.SZ", "20261117", None]]


def test_fetch__one_page__is_one_post_and_a_typed_table(server: WireServer, client: TushareClient) -> None:
    server.answer = lambda _: rows_reply(FIELDS, ITEMS)
    table = client.fetch(DAILY)
    assert table.schema.equals(SCHEMA)
    assert table["close"].to_pylist() == [10.25, None]
    [call] = server.calls
    assert call.path == "/dataapi/daily"
    assert call.payload == {
        "api_name": "daily",
        "token": SECRET,
        "params": {"trade_date": "20261117"},
        "fields": "ts_code,trade_date,close",
    }


def test_fetch__huge_answer__is_read_whole(server: WireServer, client: TushareClient) -> None:
    reply = rows_reply(FIELDS, ITEMS * 100_000)
    server.answer = lambda _: reply
    assert client.fetch(TushareRequest("daily", {}, SCHEMA, cap=1_000_000)).num_rows == 200_000


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply(b"<!doctype html><p>maintenance"), "a web page instead of JSON"),
        (Reply(), "no readable JSON"),
        (Reply(rows_reply(FIELDS, ITEMS).body[:60]), r"no readable JSON \(60 bytes\)"),
        (Reply(status="408 Request Timeout"), "HTTP 408"),
    ],
)
def test_fetch__unusable_answer__is_source_down_and_never_an_empty_table(
    server: WireServer, client: TushareClient, reply: Reply, text: str
) -> None:
    server.answer = lambda _: reply
    with pytest.raises(SourceDown, match=f"daily: .*{text}") as caught:
        client.fetch(DAILY)
    assert caught.value.retry_in_run
    assert len(server.calls) == 1, "the client itself never tries again"


@pytest.mark.parametrize(
    ("status", "kind", "setting"),
    [
        ("302 Found", WrongAddress, "TUSHARE_URL"),
        ("401 Unauthorized", TokenRefused, "TUSHARE_TOKEN"),
        ("403 Forbidden", NotPermitted, "TUSHARE_TOKEN"),
        ("429 Too Many Requests", RateLimited, ""),
        ("500 Internal Server Error", SourceFails, ""),
    ],
)
def test_fetch__status_of_a_refusal__becomes_its_type(
    server: WireServer, client: TushareClient, status: str, kind: type[Exception], setting: str
) -> None:
    server.answer = lambda _: Reply(b"no", status)
    with pytest.raises((PermanentRunnerError, TransientResourceError)) as caught:
        client.fetch(DAILY)
    assert type(caught.value) is kind
    assert setting in caught.value.remedy
    assert getattr(caught.value, "retry_in_run", False) is (kind is SourceFails)


def test_query__rows__are_the_frame_that_users_of_the_package_know(
    server: WireServer, client: TushareClient
) -> None:
    server.answer = lambda _: rows_reply(FIELDS, ITEMS)
    api = client._api
    frame = api.query("daily", fields=FIELDS, trade_date="20261117", limit=5, day=date(2026, 11, 17))
    assert list(frame.columns) == FIELDS
    assert frame["trade_date"].tolist() == ["20261117", "20261117"]
    assert frame["close"].tolist()[0] == 10.25
    assert server.calls[0].payload["fields"] == "ts_code,trade_date,close"
    assert server.calls[0].payload["params"] == {
        "trade_date": "20261117",
        "limit": 5,
        "day": "2026-11-17",
    }
    server.answer = lambda _: rows_reply(FIELDS, [])
    assert list(api.query("daily").columns) == FIELDS


def test_package_api__http_error__raises_instead_of_an_empty_frame(
    server: WireServer, client: TushareClient
) -> None:
    from tushare.pro.client import DataApi

    api = client._api
    assert isinstance(api, DataApi)
    server.answer = lambda _: rows_reply(FIELDS, ITEMS)
    assert len(api.daily(trade_date="20261117")) == 2
    assert server.calls[-1].payload["params"] == {"trade_date": "20261117"}
    server.answer = lambda _: Reply(status="500 Internal Server Error")
    with pytest.raises(SourceDown):
        api.daily(trade_date="20261117")
    calls = len(server.calls)
    copy.copy(api)
    assert not hasattr(api, "_repr_html_")
    assert len(server.calls) == calls, "probing for private names calls nobody"


def test_fetch__refused_for_its_rate__pauses_its_endpoint_as_long_as_the_source_says(
    server: WireServer,
) -> None:
    pauses: list[tuple[str, timedelta | None]] = []

    class Pauses(Pacer):
        def pause(self, api_name: str, wait: timedelta | None) -> None:
            pauses.append((api_name, wait))

    with closing(client_of(server, PATIENT, Pauses(None, per_minute=1))) as client:
        for reply in (
            refusal_reply(40203, "抱歉，您每分钟最多访问该接口50次"),
            Reply(status="429 Slow Down"),
            Reply(status="429 Slow Down", headers={"Retry-After": "1"}),
            refusal_reply(40203, "抱歉，您每天最多访问该接口5次"),
        ):
            server.answer = lambda _, reply=reply: reply  # type: ignore[misc]
            with pytest.raises(TransientResourceError):
                client.fetch(DAILY)
    assert pauses == [("daily", None), ("daily", None), ("daily", timedelta(seconds=1))]


def test_client__empty_token__is_refused_before_any_call() -> None:
    with pytest.raises(TokenRefused, match="no Tushare token") as caught:
        TushareClient(url=None, token="  ", points=0, pacer=Pacer(None, per_minute=1))
    assert "TUSHARE_TOKEN" in caught.value.remedy


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (None, "https://api.tushare.pro/dataapi"),
        ("https://api.tushare.pro", "https://api.tushare.pro/dataapi"),
        ("https://api.tushare.pro/", "https://api.tushare.pro/dataapi"),
        ("mirror.example/dataapi/", "https://mirror.example/dataapi"),
        ("http://mirror.example", "http://mirror.example"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("localhost:8000", "http://localhost:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("https://user:pass@mirror.example/x", "https://mirror.example/x"),
    ],
)
def test_address__without_a_scheme__is_https_except_on_this_machine(url: str | None, shown: str) -> None:
    client = TushareClient(url=url, token="t" * 20, points=0, pacer=Pacer(None, per_minute=1))
    assert repr(client) == f"TushareClient(url='{shown}', points=0)"


@pytest.mark.parametrize("url", ["ftp://me:hunter2@mirror.example", "http://", "https:///x"])
def test_address__no_http_url__is_refused_without_its_password(url: str) -> None:
    with pytest.raises(WrongAddress) as caught:
        TushareClient(url=url, token="t" * 20, points=0, pacer=Pacer(None, per_minute=1))
    assert "TUSHARE_URL" in caught.value.remedy
    assert "hunter2" not in caught.value.message


def test_address__plain_http_to_a_far_host__is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    TushareClient(url="http://mirror.example", token="t" * 20, points=0, pacer=Pacer(None, per_minute=1))
    assert "unencrypted to http://mirror.example" in caplog.text
