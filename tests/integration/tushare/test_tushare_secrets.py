"""The token appears in no message, repr, exception chain, captured local or log record, whatever happens."""

import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from domain.shared.error import PerennialError
from resources.tushare.client import TushareClient
from resources.tushare.pace import Pacer
from resources.tushare.request import Request

DAILY = Request("daily", {}, pa.schema([("close", pa.float64())]))


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        yield from chain_of(error.__context__)
        error = error.__cause__


def everything_about(error: BaseException) -> str:
    texts = [*traceback.format_exception(error)]
    for link in chain_of(error):
        texts += [
            str(link),
            repr(link),
            repr(link.args),
            repr(vars(link)),
            repr(getattr(link, "__notes__", "")),
        ]
    return "\n".join(texts)


def echoes(wire: Any) -> dict[str, Any]:
    """Servers that talk too much: each answer carries the token that came with the call."""
    token = wire.token
    page = f"<html>bad request: token={token}</html>".encode()
    return {
        "refused token": wire.refusal(40101, f"您的token不对，请确认。{token}"),
        "rate limit": wire.refusal(40203, f"{token} 每分钟最多访问该接口50次"),
        "unknown refusal": wire.refusal(1234, f"what is {token}?"),
        "unknown code": wire.refusal(token, "?"),
        "page": wire.reply(page),
        "HTTP 500": wire.reply(page, status="500 Internal Server Error"),
        "HTTP 401": wire.reply(page, status="401 Unauthorized"),
        "HTTP 429": wire.reply(page, status="429 Too Many Requests"),
        "redirect": wire.reply(
            page, status="302 Found", headers={"Location": f"http://127.0.0.1:1/?t={token}"}
        ),
        "truncated JSON": wire.reply(b'{"code": 0, "echo": "' + token[:30].encode()),
        "no envelope": wire.reply(f'["{token}"]'.encode()),
        "no rows": wire.rows([token], []),
        "wrong shape": wire.rows(["close"], [[1.0, token]]),
        "wrong names": wire.rows([token, token], []),
        "wrong value": wire.rows(["close"], [[token]]),
        "wrong value, long": wire.rows(["close"], [["x" * 280 + token]]),
        "reset": wire.reply(page * 1000, sent=40, then="reset"),
        "stall": wire.reply(page, sent=40, then="stall"),
    }


CASES = [
    "refused token",
    "rate limit",
    "unknown refusal",
    "unknown code",
    "page",
    "HTTP 500",
    "HTTP 401",
    "HTTP 429",
    "redirect",
    "truncated JSON",
    "no envelope",
    "no rows",
    "wrong shape",
    "wrong names",
    "wrong value",
    "wrong value, long",
    "reset",
    "stall",
]


def test_every_talkative_server_is_tried(wire: Any) -> None:
    assert list(echoes(wire)) == CASES


@pytest.mark.parametrize("case", CASES)
def test_an_echoed_token_is_blanked_everywhere(
    server: Any,
    client: TushareClient,
    hasty_client: TushareClient,
    wire: Any,
    case: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if case == "stall":
        client = hasty_client
    server.answer = lambda _: echoes(wire)[case]
    with caplog.at_level(logging.DEBUG), pytest.raises(PerennialError) as caught:
        client.fetch(DAILY)
    assert server.calls[0].payload["token"] == wire.token, "the server did get it"
    seen = everything_about(caught.value) + repr(client) + "".join(map(repr, map(vars, caplog.records)))
    assert wire.token[:12] not in seen
    assert [*chain_of(caught.value)] == [caught.value], "library errors hold their request: none is chained"


def test_a_traceback_with_local_variables_shows_no_token(
    server: Any, hasty_client: TushareClient, wire: Any
) -> None:
    for reply in (
        wire.reply(status="500 Oops"),
        wire.reply(sent=0, then="stall"),
        wire.refusal(40101, "token不对"),
    ):
        server.answer = lambda _, reply=reply: reply
        with pytest.raises(PerennialError) as caught:
            hasty_client.fetch(DAILY)
        trace = caught.value.__traceback__
        assert trace is not None
        frames = trace.tb_next  # the first one is this test's own
        shown = traceback.TracebackException(type(caught.value), caught.value, frames, capture_locals=True)
        text = "".join(shown.format())
        assert "resources/tushare" in text
        assert wire.token not in text


def test_the_package_object_holds_no_token(client: TushareClient, wire: Any) -> None:
    api = client._api()
    assert wire.token not in repr(vars(api)) + repr(api) + repr(vars(client))


def test_a_bad_address_is_refused_without_its_password() -> None:
    url = "ftp://me:hunter2@host"
    with pytest.raises(PerennialError) as caught:
        TushareClient(url=url, token="t" * 20, points=0, pacer=Pacer.unlimited())
    assert "hunter2" not in everything_about(caught.value)
