"""Every fault, as a client meets it on the wire."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from sandbox.exchange import Exchange
from sandbox.server import SandboxServer
from tests.oracles.exchange import true_rows

Ask = Callable[..., Any]
DAY = date(2026, 11, 17)
PARAMS = {"trade_date": "20261117"}
BODY = json.dumps({"api_name": "daily", "token": "sandbox-token", "params": PARAMS})


def raw_call(server: SandboxServer) -> tuple[bytes, bool]:
    """All bytes of one answer, and whether the connection was reset instead of closed."""
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        head = f"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(BODY)}\r\n\r\n"
        raw.sendall((head + BODY).encode())
        try:
            while chunk := raw.recv(65536):
                received += chunk
        except ConnectionResetError:
            return received, True
    return received, False


def content_length(head: bytes) -> int:
    return next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")
    )


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_http_errors(
    server: SandboxServer, connection: http.client.HTTPConnection, ask: Ask, status: int
) -> None:
    server.faults.set("daily", f"http_{status}", times=1)
    connection.request("POST", "/", BODY)
    reply = connection.getresponse()
    reply.read()
    assert reply.status == status
    assert (reply.getheader("Retry-After") is not None) == (status in (429, 503))
    assert ask("daily", PARAMS)["code"] == 0


def test_a_stall_holds_the_answer_and_then_gives_it(server: SandboxServer, ask: Ask) -> None:
    server.faults.set("daily", "stall", times=1, seconds=0.3)
    began = time.monotonic()
    assert ask("daily", PARAMS)["data"]["items"]
    assert time.monotonic() - began >= 0.3


def test_a_reset_comes_in_the_middle_of_the_body(server: SandboxServer) -> None:
    server.faults.set("daily", "reset", times=1)
    received, reset = raw_call(server)
    head, _, body = received.partition(b"\r\n\r\n")
    assert reset
    assert head.startswith(b"HTTP/1.1 200")
    assert len(body) < content_length(head)
    assert not raw_call(server)[1]


def test_truncated_json_looks_like_a_good_answer(server: SandboxServer) -> None:
    server.faults.set("daily", "truncate", times=1)
    received, reset = raw_call(server)
    head, _, body = received.partition(b"\r\n\r\n")
    assert not reset
    assert head.startswith(b"HTTP/1.1 200")
    assert len(body) == content_length(head)
    with pytest.raises(json.JSONDecodeError):
        json.loads(body)


def test_an_error_page_has_status_200(server: SandboxServer) -> None:
    server.faults.set("daily", "html", times=1)
    head, _, body = raw_call(server)[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"text/html" in head
    assert body.startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("rate_limit", 40203, "抱歉，您每分钟最多访问该接口9次"),
        ("rate_limit_by_name", 40203, "抱歉，您访问接口(daily)频率超限(9次/分钟)"),
        ("no_permission_by_name", 40203, "抱歉，您没有接口(daily)访问权限"),
        ("hour_quota", 40203, "抱歉，您每小时最多访问该接口9次"),
        ("day_quota", 40203, "抱歉，您每天最多访问该接口9次"),
        ("bad_token", 40101, "您的token不对，请确认。"),
        ("no_permission", 2002, "抱歉，您没有访问该接口的权限"),
    ],
)
def test_refusals_on_demand(server: SandboxServer, ask: Ask, kind: str, code: int, message: str) -> None:
    server.faults.set("daily", kind, times=1, limit=9)
    answer = ask("daily", PARAMS)
    assert answer["code"] == code
    assert answer["msg"].startswith(message)
    assert ask("daily", PARAMS)["code"] == 0


def test_an_empty_day_is_a_success_without_rows(server: SandboxServer, ask: Ask) -> None:
    server.faults.set("daily", "empty_day", day="2026-11-17")
    answer = ask("daily", PARAMS)
    assert (answer["code"], answer["data"]["items"]) == (0, [])
    assert ask("daily", {"trade_date": "20261116"})["data"]["items"]


def test_a_partial_day_is_partial_until_it_is_cleared(
    server: SandboxServer, ask: Ask, exchange: Exchange
) -> None:
    whole = ask("daily", PARAMS)["data"]["items"]
    server.faults.set("daily", "partial_day", day="2026-11-17", keep=0.6)
    part = ask("daily", PARAMS)["data"]["items"]
    assert 0.55 < len(part) / len(whole) < 0.65
    assert ask("daily", PARAMS)["data"]["items"] == part
    server.faults.clear("daily")
    assert ask("daily", PARAMS)["data"]["items"] == whole
    assert len(whole) == true_rows(exchange, "daily", DAY).num_rows


def test_a_revised_day_differs_in_some_rows_until_it_is_cleared(server: SandboxServer, ask: Ask) -> None:
    before = ask("adj_factor", PARAMS)["data"]["items"]
    server.faults.set("adj_factor", "revised_day", day="2026-11-17")
    after = ask("adj_factor", PARAMS)["data"]["items"]
    assert [row[0] for row in after] == [row[0] for row in before]
    assert 0 < sum(a != b for a, b in zip(after, before, strict=True)) < len(before) / 5
    assert ask("adj_factor", PARAMS)["data"]["items"] == after
    server.faults.clear()
    assert ask("adj_factor", PARAMS)["data"]["items"] == before


def test_duplicate_rows(server: SandboxServer, ask: Ask) -> None:
    server.faults.set("daily", "duplicate_rows")
    items = ask("daily", PARAMS)["data"]["items"]
    assert len(items) > len({row[0] for row in items})
