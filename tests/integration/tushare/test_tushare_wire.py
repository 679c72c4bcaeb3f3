"""What a network and a server can do to a call, and what the caller gets to see of it."""

import copy
import gzip
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from domain.shared.error import PermanentRunnerError, TransientResourceError
from resources.tushare.client import TushareClient
from resources.tushare.errors import (
    BadAnswer,
    NotPermitted,
    RateLimited,
    SourceDown,
    TokenRefused,
    WrongAddress,
)
from resources.tushare.pace import Pacer
from resources.tushare.request import Request

SCHEMA = pa.schema([("ts_code", pa.string()), ("trade_date", pa.date32()), ("close", pa.float64())])
DAILY = Request("daily", {"trade_date": "20261117"}, SCHEMA)
FIELDS = ["ts_code", "trade_date", "close"]
ITEMS: list[list[Any]] = [["600000.SH", "20261117", 10.25], ["000001.SZ", "20261117", None]]


def test_a_call_is_one_post_to_the_endpoint_and_its_answer_a_typed_table(
    server: Any, client: TushareClient, wire: Any
) -> None:
    server.answer = lambda _: wire.rows(FIELDS, ITEMS)
    table = client.fetch(DAILY)
    assert table.schema.equals(SCHEMA)
    assert table["close"].to_pylist() == [10.25, None]
    [call] = server.calls
    assert call.path == "/dataapi/daily"
    assert call.payload == {
        "api_name": "daily",
        "token": wire.token,
        "params": {"trade_date": "20261117"},
        "fields": "ts_code,trade_date,close",
    }


def test_one_connection_serves_many_calls(server: Any, client: TushareClient, wire: Any) -> None:
    server.answer = lambda _: wire.rows(FIELDS, ITEMS)
    for _ in range(20):
        client.fetch(DAILY)
    assert len(server.calls) == 20
    assert server.connections == 1


def test_a_connection_the_server_closed_in_between_is_replaced(
    server: Any, client: TushareClient, wire: Any
) -> None:
    for _ in range(3):
        server.answer = lambda _: wire.reply(wire.rows(FIELDS, ITEMS).body, then="close")
        assert client.fetch(DAILY).num_rows == 2
        server.finish_connections()
    assert server.connections == 3


def test_concurrent_calls_use_as_many_connections_as_there_are_threads_and_keep_them(
    server: Any, client: TushareClient, wire: Any
) -> None:
    together = threading.Barrier(4)

    def answer(call: Any) -> Any:
        together.wait(5)
        return wire.rows(FIELDS, ITEMS)

    server.answer = answer
    for _ in range(3):  # a new pool each time: connections outlive the threads that opened them
        with ThreadPoolExecutor(4) as threads:
            assert all(t.num_rows == 2 for t in threads.map(lambda _: client.fetch(DAILY), range(8)))
    assert len(server.calls) == 24
    assert server.connections == 4


def test_a_compressed_and_chunked_answer_is_read(server: Any, client: TushareClient, wire: Any) -> None:
    body = gzip.compress(wire.rows(FIELDS, ITEMS * 500).body)
    server.answer = lambda _: wire.reply(body, headers={"Content-Encoding": "gzip"}, chunked=True)
    for _ in range(2):
        assert client.fetch(DAILY).num_rows == 1000
    assert server.connections == 1


@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
def test_a_packed_answer_that_does_not_say_so_is_quoted_in_characters_that_can_be_seen(
    server: Any, client: TushareClient, wire: Any, status: str
) -> None:
    server.answer = lambda _: wire.reply(gzip.compress(b"busy", mtime=0), status=status)
    with pytest.raises(SourceDown) as told:
        client.fetch(DAILY)
    assert told.value.message.isprintable()


def test_a_huge_answer_is_read_whole(server: Any, client: TushareClient, wire: Any) -> None:
    reply = wire.rows(FIELDS, ITEMS * 100_000)
    server.answer = lambda _: reply
    request = Request("daily", {}, SCHEMA, cap=1_000_000)
    assert client.fetch(request).num_rows == 200_000


def test_an_answer_without_an_end_is_refused(server: Any, client: TushareClient, wire: Any) -> None:
    body = gzip.compress(b" " * (65 * 2**20), compresslevel=1)
    server.answer = lambda _: wire.reply(body, headers={"Content-Encoding": "gzip"})
    with pytest.raises(BadAnswer, match="larger than 64 MiB"):
        client.fetch(DAILY)


FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "HTTP 500": (lambda w: w.reply(b"oops", status="500 Internal Server Error"), "HTTP 500 .*oops"),
    "HTTP 502 page": (lambda w: w.reply(b"<html>Bad Gateway</html>", status="502 Bad Gateway"), "HTTP 502"),
    "HTTP 503 empty": (lambda w: w.reply(status="503 Service Unavailable"), "HTTP 503 .*no content"),
    "HTTP 408": (lambda w: w.reply(status="408 Request Timeout"), "HTTP 408"),
    "200 with a page": (lambda w: w.reply(b"<!doctype html><p>maintenance"), "a web page instead of JSON"),
    "200 and nothing": (lambda w: w.reply(), "no readable JSON"),
    "half the JSON": (lambda w: w.reply(w.rows(FIELDS, ITEMS).body[:60]), r"no readable JSON \(60 bytes\)"),
    "closed before the answer": (
        lambda w: w.reply(w.rows(FIELDS, ITEMS).body, sent=0, then="close"),
        "Incomplete",
    ),
    "closed mid-body": (
        lambda w: w.reply(w.rows(FIELDS, ITEMS).body, sent=50, then="close"),
        "IncompleteRead",
    ),
    "reset mid-body": (lambda w: w.reply(b"x" * 10**6, sent=50, then="reset"), "reset by peer"),
    "closed mid-chunk": (
        lambda w: w.reply(w.rows(FIELDS, ITEMS).body, chunked=True, sent=50, then="close"),
        "IncompleteRead",
    ),
    "silence": (lambda w: w.reply(b"x", sent=0, then="stall"), "no answer within 0.3 s"),
    "silence mid-body": (lambda w: w.reply(b"x" * 99, sent=9, then="stall"), "no answer within 0.3 s"),
    "a drip": (lambda w: w.reply(b"x" * 99, sent=9, then="drip"), "not complete after 0.6 s"),
    "a lie about gzip": (
        lambda w: w.reply(b"not compressed", headers={"Content-Encoding": "gzip"}),
        "incorrect header check",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_wire_is_typed_retried_in_the_run_and_never_an_empty_table(
    server: Any, client: TushareClient, hasty_client: TushareClient, wire: Any, fault: str
) -> None:
    reply, text = FAULTS[fault]
    if reply(wire).then in ("stall", "drip"):
        client = hasty_client
    server.answer = lambda _: reply(wire)
    with pytest.raises(SourceDown, match=text) as caught:
        client.fetch(DAILY)
    assert caught.value.message.startswith("daily: ")
    assert caught.value.retry_in_run
    assert len(server.calls) == 1, "the client itself never tries again"
    server.answer = lambda _: wire.rows(FIELDS, ITEMS)
    assert client.fetch(DAILY).num_rows == 2, "and the next call is not poisoned"


def test_nobody_listening_is_a_source_that_is_down(wire: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        TushareClient(url=f"127.0.0.1:{port}", token="t" * 20, points=0, pacer=Pacer.unlimited()) as client,
        pytest.raises(SourceDown, match=rf"daily: .*refused.* \(http://127.0.0.1:{port}\)"),
    ):
        client.fetch(DAILY)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("401 Unauthorized", TokenRefused),
        ("403 Forbidden", NotPermitted),
        ("404 Not Found", WrongAddress),
        ("405 Method Not Allowed", WrongAddress),
        ("302 Found", WrongAddress),
        ("307 Temporary Redirect", WrongAddress),
    ],
)
def test_a_status_only_a_person_can_change_is_permanent(
    server: Any, client: TushareClient, wire: Any, status: str, kind: type[PermanentRunnerError]
) -> None:
    server.answer = lambda _: wire.reply(
        b"no", status=status, headers={"Location": f"{server.url}/elsewhere"}
    )
    with pytest.raises(kind, match=f"HTTP {status[:3]}") as caught:
        client.fetch(DAILY)
    assert "TUSHARE_" in caught.value.remedy
    assert len(server.calls) == 1, "the token follows no redirect"


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("17", timedelta(seconds=17)),
        ("Tue, 17 Nov 2026 10:00:30 GMT", timedelta(seconds=30)),
        ("Tue, 17 Nov 2026 09:00:00 GMT", timedelta(seconds=1)),
        ("999999999999", timedelta(days=1)),
        ("soon", timedelta(minutes=1)),
        ("", timedelta(minutes=1)),
        ("0", timedelta(minutes=1)),
    ],
)
def test_http_429_is_a_rate_limit_that_says_how_long(
    server: Any, wire: Any, header: str, wait: timedelta
) -> None:
    server.answer = lambda _: wire.reply(status="429 Too Many Requests", headers={"Retry-After": header})
    with (
        TushareClient(
            url=server.url,
            token=wire.token,
            points=0,
            pacer=Pacer.unlimited(),
            clock=lambda: datetime(2026, 11, 17, 10, 0, tzinfo=UTC),
        ) as client,
        pytest.raises(RateLimited) as caught,
    ):
        client.fetch(DAILY)
    assert caught.value.retry_after == wait
    assert caught.value.reason_code == "rate_limit"
    assert not caught.value.retry_in_run


def test_a_refusal_keeps_its_code_and_its_words(server: Any, client: TushareClient, wire: Any) -> None:
    server.answer = lambda _: wire.refusal(40101, "您的token不对，请确认。")
    with pytest.raises(TokenRefused, match="daily: Tushare refused with code 40101: 您的token不对，请确认。"):
        client.fetch(DAILY)


def test_query_gives_the_frame_that_users_of_the_package_know(
    server: Any, client: TushareClient, wire: Any
) -> None:
    server.answer = lambda _: wire.rows(FIELDS, ITEMS)
    frame = client.query("daily", fields=["ts_code", "trade_date", "close"], trade_date="20261117")
    assert list(frame.columns) == FIELDS
    assert frame["trade_date"].tolist() == ["20261117", "20261117"]
    assert frame["close"].tolist()[0] == 10.25
    assert server.calls[0].payload["fields"] == "ts_code,trade_date,close"
    server.answer = lambda _: wire.rows(FIELDS, [])
    assert list(client.query("daily").columns) == FIELDS


def test_the_stock_interface_is_kept_but_its_silent_empty_frame_is_not(
    server: Any, client: TushareClient, wire: Any
) -> None:
    from tushare.pro.client import DataApi

    api = client._api()
    assert isinstance(api, DataApi)
    server.answer = lambda _: wire.rows(FIELDS, ITEMS)
    assert len(api.daily(trade_date="20261117")) == 2
    assert server.calls[-1].payload["params"] == {"trade_date": "20261117"}
    server.answer = lambda _: wire.reply(status="500 Internal Server Error")
    with pytest.raises(SourceDown):
        api.daily(trade_date="20261117")
    calls = len(server.calls)
    copy.copy(api)
    assert not hasattr(api, "_repr_html_")
    assert len(server.calls) == calls, "probing for private names calls nobody"


def test_a_rate_limit_closes_the_minute_for_every_process(server: Any, wire: Any) -> None:
    closed = []

    class Told(Pacer):
        def mark_used_up(self) -> None:
            closed.append(True)

    pacer = Told(None, per_minute=1)
    with TushareClient(url=server.url, token=wire.token, points=0, pacer=pacer) as client:
        for reply in (
            wire.refusal(40203, "抱歉，您每分钟最多访问该接口50次"),
            wire.reply(status="429 Slow Down"),
            wire.reply(status="429 Slow Down", headers={"Retry-After": "1"}),
        ):
            server.answer = lambda _, reply=reply: reply
            with pytest.raises(RateLimited):
                client.fetch(DAILY)
        server.answer = lambda _: wire.refusal(40203, "抱歉，您每天最多访问该接口5次")
        with pytest.raises(TransientResourceError):
            client.fetch(DAILY)
    assert closed == [True, True]


def test_an_empty_token_is_refused_before_any_call(server: Any) -> None:
    with pytest.raises(TokenRefused, match="no Tushare token") as caught:
        TushareClient(url=server.url, token="  ", points=0, pacer=Pacer.unlimited())
    assert "TUSHARE_TOKEN" in caught.value.remedy
    assert server.calls == []


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
def test_https_is_the_default_except_on_this_machine(url: str | None, shown: str) -> None:
    client = TushareClient(url=url, token="t" * 20, points=0, pacer=Pacer.unlimited())
    assert repr(client) == f"TushareClient(url='{shown}', points=0)"


@pytest.mark.parametrize("url", ["ftp://mirror.example", "http://", "https:///x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(WrongAddress) as caught:
        TushareClient(url=url, token="t" * 20, points=0, pacer=Pacer.unlimited())
    assert "TUSHARE_URL" in caught.value.remedy


def test_plain_http_to_a_far_host_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    TushareClient(url="http://mirror.example", token="t" * 20, points=0, pacer=Pacer.unlimited())
    assert "unencrypted to http://mirror.example" in caplog.text


def test_params_of_any_printable_type_are_sent_as_json(server: Any, client: TushareClient, wire: Any) -> None:
    server.answer = lambda _: wire.rows(FIELDS, [])
    client.query("daily", limit=5, day=date(2026, 11, 17))
    assert json.loads(json.dumps(server.calls[0].payload["params"])) == {"limit": 5, "day": "2026-11-17"}
