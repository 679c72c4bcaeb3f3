"""The token appears in no message, repr, exception chain, captured local or log record."""

import logging
import traceback
from collections.abc import Iterator

import pyarrow as pa
import pytest

from domain.shared.error import PerennialError
from resources.tushare.client import TushareClient
from resources.tushare.request import TushareRequest
from tests.integration.resources.http.wire_server import SECRET, Reply, WireServer
from tests.integration.resources.tushare.conftest import refusal_reply, rows_reply

DAILY = TushareRequest("daily", {}, pa.schema([("close", pa.float64())]))
PAGE = f"<html>bad request: token={SECRET}</html>".encode()
ECHOES = {
    "refused token": refusal_reply(40101, f"您的token不对，请确认。{SECRET}"),
    "rate limit": refusal_reply(40203, f"{SECRET} 每分钟最多访问该接口50次"),
    "unknown refusal": refusal_reply(1234, f"what is {SECRET}?"),
    "unknown code": refusal_reply(SECRET, "?"),
    "page": Reply(PAGE),
    "HTTP 500": Reply(PAGE, status="500 Internal Server Error"),
    "HTTP 429": Reply(PAGE, status="429 Too Many Requests"),
    "redirect": Reply(PAGE, status="302 Found", headers={"Location": f"http://127.0.0.1:1/?t={SECRET}"}),
    "truncated JSON": Reply(b'{"code": 0, "echo": "' + SECRET[:30].encode()),
    "no envelope": Reply(f'["{SECRET}"]'.encode()),
    "no rows": rows_reply([SECRET], []),
    "wrong shape": rows_reply(["close"], [[1.0, SECRET]]),
    "wrong names": rows_reply([SECRET, SECRET], []),
    "wrong value": rows_reply(["close"], [[SECRET]]),
    "wrong value, long": rows_reply(["close"], [["x" * 280 + SECRET]]),
    "reset": Reply(PAGE * 1000, sent=40, then="reset"),
    "stall": Reply(PAGE, sent=40, then="stall"),
}
"""Servers that echo the token that came with the call."""


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        yield from chain_of(error.__context__)
        error = error.__cause__


def everything_about(error: BaseException) -> str:
    texts = [*traceback.format_exception(error)]
    for link in chain_of(error):
        texts += [str(link), repr(link), repr(link.args), repr(vars(link))]
        texts.append(repr(getattr(link, "__notes__", "")))
    return "\n".join(texts)


@pytest.mark.parametrize("case", ECHOES)
def test_fetch__token_echoed__is_blanked_everywhere(
    server: WireServer,
    client: TushareClient,
    hasty_client: TushareClient,
    case: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.answer = lambda _: ECHOES[case]
    with caplog.at_level(logging.DEBUG), pytest.raises(PerennialError) as caught:
        (hasty_client if case == "stall" else client).fetch(DAILY)
    assert server.calls[0].payload["token"] == SECRET, "the server did get it"
    seen = everything_about(caught.value) + repr(client) + "".join(map(repr, map(vars, caplog.records)))
    assert SECRET[:12] not in seen
    assert [*chain_of(caught.value)] == [caught.value], "library errors hold their request: none is chained"


@pytest.mark.parametrize("case", ["HTTP 500", "stall", "refused token"])
def test_fetch__traceback_with_local_variables__shows_no_token(
    server: WireServer, hasty_client: TushareClient, case: str
) -> None:
    server.answer = lambda _: ECHOES[case]
    with pytest.raises(PerennialError) as caught:
        hasty_client.fetch(DAILY)
    trace = caught.value.__traceback__
    assert trace is not None
    frames = trace.tb_next  # the first one is this test's own
    shown = traceback.TracebackException(type(caught.value), caught.value, frames, capture_locals=True)
    text = "".join(shown.format())
    assert "resources/tushare" in text
    assert SECRET not in text


def test_package_api__attributes__hold_no_token(client: TushareClient) -> None:
    api = client._api
    assert SECRET not in repr(vars(api)) + repr(api) + repr(vars(client))
