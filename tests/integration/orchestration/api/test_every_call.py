"""What holds for every call: errors, access, limits, headers, log. On a real socket."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from domain.shared.error import InvalidInput, TransientResourceError
from orchestration.api import frame
from orchestration.api.app import build_app
from orchestration.api.limits import LARGEST_BODY
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from tests.serving import serving_app
from tests.settings import make_settings

TOKEN = "operate-0123456789abcdef"
READ = "read-fedcba9876543210"
PLANTED = "planted-tushare-s3cret"


class Order(BaseModel):
    number: int


def add_routes(app: FastAPI) -> None:
    """Calls that go wrong in every way."""

    @app.get("/bug")
    def bug() -> None:
        raise RuntimeError(f"nobody foresaw {PLANTED}")

    @app.get("/source")
    def source() -> None:
        raise TransientResourceError(f"{PLANTED} is away", reason_code="source_down", remedy=PLANTED)

    @app.get("/value")
    def value(number: int) -> None:
        raise InvalidInput("no such number")

    @app.post("/order")
    def order(body: Order) -> Order:
        return body


@pytest.fixture
def settings(tmp_path) -> Settings:
    return make_settings(
        home=tmp_path / "home",
        source="sandbox",
        api_token=TOKEN,
        api_read_token=READ,
        tushare_token=PLANTED,
    )


@pytest.fixture
def api(settings: Settings) -> Iterator[httpx.Client]:
    app = build_app(settings)
    add_routes(app)
    with serving_app(app) as address, client(address) as one:
        yield one


def client(address: str, token: str = TOKEN) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=address, headers=headers, timeout=30)


def require_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem: dict[str, Any] = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem.keys() >= {"type", "title", "detail", "remedy"}
    assert PLANTED not in answer.text
    return problem


def test_problem__of_every_sort__has_its_status_and_code(api: httpx.Client) -> None:
    require_problem(api.get("/nowhere"), 404, "no_such_call")
    require_problem(api.get("/work/"), 404, "no_such_call")
    require_problem(api.post("/status"), 405, "no_such_call")
    require_problem(api.get("/value?number=1"), 422, "invalid_input")
    problem = require_problem(api.get("/value?number=x"), 422, "invalid_request")
    assert [(one["in"], one["field"]) for one in problem["errors"]] == [("query", "number")]
    problem = require_problem(api.post("/order", json={"number": PLANTED}), 422, "invalid_request")
    assert [(one["in"], one["field"]) for one in problem["errors"]] == [("body", "number")]
    require_problem(
        api.post("/order", content="{", headers={"Content-Type": "application/json"}), 422, "invalid_request"
    )
    require_problem(api.get(f"/value?number=1&{PLANTED}=1"), 422, "invalid_request")
    require_problem(api.get("/source"), 503, "source_down")
    for path, place in (("/work?key=a%00b", "query"), ("/pipelines/a%00b", "path"), ("/work?%00=1", "query")):
        problem = require_problem(api.get(path), 422, "invalid_request")
        assert problem["errors"][0] | {"field": ""} == {
            "in": place,
            "field": "",
            "problem": "holds a NUL character",
        }


def test_bug__in_an_endpoint__is_in_the_log_only_and_without_secrets(
    api: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    answer = api.get("/bug", headers={"X-Request-ID": "call-7"})
    problem = require_problem(answer, 500, "unclassified")
    assert "call-7" in problem["remedy"]
    assert "Traceback" not in answer.text
    assert "RuntimeError" not in answer.text
    [line] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith("call-7 failed: Traceback")
    assert "nobody foresaw ***" in line
    assert PLANTED not in caplog.text


def test_scopes__read_token__reads_and_does_not_operate(api: httpx.Client, ledger: Ledger) -> None:
    assert ledger.get(1) is None
    reader = {"Authorization": f"Bearer {READ}"}
    assert api.get("/work", headers=reader).status_code == 200
    for path in ("/work/1/retry", "/work/1/cancel", "/carbon/uploads?kind=units"):
        require_problem(api.post(path, headers=reader), 403, "scope_missing")
    require_problem(api.post("/work/1/retry"), 404, "unknown_work")
    answer = api.get("/work", headers={"Authorization": f"Bearer {READ}{TOKEN}"})
    require_problem(answer, 401, "wrong_api_token")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_scopes__only_a_read_token_is_set__nobody_operates(settings: Settings) -> None:
    with serving_app(build_app(make_settings(settings, api_token=""))) as address:
        for token, reads, operates in (("", 401, 401), (READ, 503, 403), (TOKEN, 401, 401)):
            with client(address, token) as api:
                assert api.get("/work").status_code == reads
                assert api.post("/work/1/retry").status_code == operates


def test_access__open_paths__need_no_token_and_name_no_address(api: httpx.Client, settings: Settings) -> None:
    nobody = {"Authorization": ""}
    assert api.get("/healthz", headers=nobody).json() == {"status": "alive"}
    assert "paths" in api.get("/openapi.json", headers=nobody).json()
    answer = api.get("/readyz", headers=nobody)
    require_problem(answer, 503, "ledger_schema")
    assert str(settings.home) not in answer.text


def test_readyz__ledger_and_lake_are_there__is_ready(api: httpx.Client, ledger: Ledger) -> None:
    assert ledger.running() == []
    assert api.get("/readyz").json() == {"status": "ready"}


def head(api: httpx.Client, lines: str) -> bytes:
    """The first bytes of the answer to a head whose body never comes."""
    with socket.create_connection((api.base_url.host, api.base_url.port or 0), timeout=10) as caller:
        caller.sendall(f"{lines}\r\nHost: x\r\n\r\n".replace("\n", "\r\n").replace("\r\r", "\r").encode())
        return caller.recv(100)


def test_access__wrong_token__is_refused_before_the_body_is_read(api: httpx.Client) -> None:
    refused = head(api, "POST /order HTTP/1.1\nAuthorization: Bearer no\nContent-Length: 1000")
    assert refused.startswith(b"HTTP/1.1 401")


def test_body__too_large__is_refused_before_and_while_it_is_read(api: httpx.Client) -> None:
    declared = head(
        api, f"POST /order HTTP/1.1\nAuthorization: Bearer {TOKEN}\nContent-Length: {LARGEST_BODY + 1}"
    )
    assert declared.startswith(b"HTTP/1.1 413")
    parts = (b" " * 100_000 for _ in range(12))
    json = {"Content-Type": "application/json"}
    require_problem(api.post("/order", content=parts, headers=json), 413, "body_too_large")
    answer = api.post("/order", content=b"x" * (LARGEST_BODY + 1), headers=json)
    require_problem(answer, 413, "body_too_large")
    assert api.post("/order", json={"number": 1}).json() == {"number": 1}


def test_rate__too_many_requests__are_refused_with_a_time_to_wait(settings: Settings) -> None:
    app = build_app(make_settings(settings, api_rate=0.1))
    with serving_app(app) as address, client(address) as api:
        answers = [api.get("/healthz") for _ in range(2)]
        problem = require_problem(answers[1], 429, "too_many_requests")
        assert answers[0].status_code == 200
        assert 1 <= int(answers[1].headers["Retry-After"]) <= 10
        assert "Retry-After" in problem["remedy"]


def test_cors__page_of_another_host__gets_no_permission(api: httpx.Client) -> None:
    page = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (api.options("/work/1/retry", headers=page), api.get("/healthz", headers=page)):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert api.options("/work/1/retry", headers=page).status_code >= 400


def test_headers__of_every_answer__protect_it(api: httpx.Client) -> None:
    for answer in (
        api.get("/healthz"),
        api.get("/nowhere"),
        api.get("/bug"),
        api.get("/work", headers={"Authorization": ""}),
    ):
        for name, value in frame.HEADERS.items():
            assert answer.headers[name] == value
        assert "server" not in answer.headers


def test_request_id__given_or_made__is_in_the_answer_and_the_log(
    api: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="perennial.api")
    mine = api.get("/value?number=1&by=anna", headers={"X-Request-ID": "mine-1"})
    made = api.get("/nowhere%0Aforged", headers={"X-Request-ID": "a b\tc"})
    assert mine.headers["X-Request-ID"] == "mine-1"
    assert len(made.headers["X-Request-ID"]) == 32
    api.get("/healthz")
    api.get(f"/{PLANTED}")
    lines = wait_for_lines(caplog, 4)
    assert lines[0][1].startswith("GET /value 422 ")
    assert lines[0][1].endswith(" mine-1")
    assert lines[1][1].startswith("GET /nowhere%0Aforged 404 ")
    assert [level for level, _ in lines] == [logging.INFO, logging.INFO, logging.DEBUG, logging.INFO]
    for secret in ("anna", TOKEN, PLANTED):
        assert secret not in caplog.text


def wait_for_lines(caplog: pytest.LogCaptureFixture, number: int) -> list[tuple[int, str]]:
    """The lines of the access log, which come after the answers."""
    end = time.monotonic() + 10
    lines: list[tuple[int, str]] = []
    while len(lines) < number and time.monotonic() < end:
        lines = [
            (record.levelno, record.getMessage())
            for record in list(caplog.records)
            if record.name == "perennial.api" and " ms " in record.getMessage()
        ]
    return lines
