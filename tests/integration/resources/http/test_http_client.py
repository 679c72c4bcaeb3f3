"""The HTTP client against a server on a real socket: limits, faults, types, pages, and what is shown."""

import gzip
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from domain.shared.error import PermanentRunnerError, TransientResourceError
from resources.http.client import Call, HttpClient
from resources.http.errors import ErrorTypes
from tests.integration.resources.http.wire_server import HASTY, PATIENT, SECRET, Reply, WireServer


class Down(TransientResourceError):
    reason_code = "down"


class Failing(Down):
    reason_code = "failing"


class Limited(TransientResourceError):
    reason_code = "limited"
    retry_in_run = False


class BadBody(TransientResourceError):
    reason_code = "bad_body"


ERRORS = ErrorTypes(
    down=Down,
    failing=Failing,
    rate_limited=Limited,
    bad_body=BadBody,
    unauthorized=partial(PermanentRunnerError, reason_code="unauthorized"),
    forbidden=partial(PermanentRunnerError, reason_code="forbidden"),
    wrong_address=partial(PermanentRunnerError, reason_code="wrong_address"),
)
CALL = Call("things", timeouts=PATIENT)
NOW = datetime(2026, 11, 17, 10, 0, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture
def client(server: WireServer) -> Iterator[HttpClient]:
    client = HttpClient(server.url, errors=ERRORS, secret=SECRET, clock=lambda: NOW)
    yield client
    client.close()


def test_get__with_a_secret__sends_it_as_a_bearer_token(server: WireServer, client: HttpClient) -> None:
    server.answer = lambda _: Reply(b"ok")
    assert client.send(Call("things", {"after": "a b"}, headers={"X-Source": "test"})) == b"ok"
    [call] = server.calls
    assert call.path == "/things?after=a+b"
    assert call.headers["Authorization"] == f"Bearer {SECRET}"
    assert (call.headers["X-Source"], call.headers["User-Agent"]) == ("test", "perennial")


def test_post__with_a_secret_field__sends_it_in_the_body_alone(server: WireServer) -> None:
    client = HttpClient(server.url, errors=ERRORS, secret=SECRET, secret_field="token")
    client.send(Call("things", payload={"day": NOW.date()}))
    [call] = server.calls
    assert call.payload == {"token": SECRET, "day": "2026-11-17"}
    assert "Authorization" not in call.headers


def test_send__many_calls__uses_one_connection(server: WireServer, client: HttpClient) -> None:
    for _ in range(20):
        client.send(CALL)
    assert (len(server.calls), server.connections) == (20, 1)


def test_send__server_closed_the_connection_in_between__opens_another(
    server: WireServer, client: HttpClient
) -> None:
    server.answer = lambda _: Reply(b"ok", then="close")
    for _ in range(3):
        assert client.send(CALL) == b"ok"
        server.finish_connections()
    assert server.connections == 3


def test_send__error_kept__keeps_no_connection_open(server: WireServer, client: HttpClient) -> None:
    """A run keeps the errors of thousands of days, and a process may have a thousand files open."""
    server.answer = lambda _: Reply(b"no", status="500 Internal Server Error")
    with pytest.raises(Failing) as kept:
        client.send(CALL)
    assert server.finish_connections(), kept.value


def test_send__concurrent_calls__keep_as_many_connections_as_threads(
    server: WireServer, client: HttpClient
) -> None:
    together = threading.Barrier(4)

    def answer(_: object) -> Reply:
        together.wait(5)
        return Reply(b"ok")

    server.answer = answer
    for _ in range(3):  # a new pool each time: connections outlive the threads that opened them
        with ThreadPoolExecutor(4) as threads:
            assert set(threads.map(lambda _: client.send(CALL), range(8))) == {b"ok"}
    assert (len(server.calls), server.connections) == (24, 4)


def test_send__compressed_and_chunked_answer__is_unpacked(server: WireServer, client: HttpClient) -> None:
    body = gzip.compress(b"x" * 10**7)
    server.answer = lambda _: Reply(body, headers={"Content-Encoding": "gzip"}, chunked=True)
    for _ in range(2):
        assert client.send(CALL) == b"x" * 10**7
    assert server.connections == 1


def test_send__body_above_its_limit__is_refused(server: WireServer, client: HttpClient) -> None:
    body = gzip.compress(b" " * (65 * 2**20), compresslevel=1)
    server.answer = lambda _: Reply(body, headers={"Content-Encoding": "gzip"})
    with pytest.raises(BadBody, match="larger than 64 MiB"):
        client.send(CALL)


def test_stream__abandoned_half_way__does_not_poison_the_next_call(
    server: WireServer, client: HttpClient
) -> None:
    server.answer = lambda _: Reply(b"x" * 10**6)
    for part in client.stream(CALL):
        assert part
        break
    assert sum(map(len, client.stream(CALL))) == 10**6


FAULTS: dict[str, tuple[Reply, str]] = {
    "HTTP 500": (Reply(b"oops", "500 Internal Server Error"), "HTTP 500 .*oops"),
    "HTTP 502 page": (Reply(b"<html>Bad Gateway</html>", "502 Bad Gateway"), r"HTTP 502 from \S+$"),
    "HTTP 503 empty": (Reply(status="503 Service Unavailable"), "HTTP 503 .*no content"),
    "HTTP 408": (Reply(status="408 Request Timeout"), "HTTP 408"),
    "closed before the answer": (Reply(b"body", sent=0, then="close"), "Incomplete"),
    "closed mid-body": (Reply(b"x" * 99, sent=50, then="close"), "IncompleteRead"),
    "reset mid-body": (Reply(b"x" * 10**6, sent=50, then="reset"), "reset by peer"),
    "closed mid-chunk": (Reply(b"x" * 99, chunked=True, sent=50, then="close"), "IncompleteRead"),
    "silence": (Reply(b"x", sent=0, then="stall"), "no answer within 0.3 s"),
    "silence mid-body": (Reply(b"x" * 99, sent=9, then="stall"), "no answer within 0.3 s"),
    "a drip": (Reply(b"x" * 99, sent=9, then="drip"), "not complete after 0.6 s"),
    "no gzip": (Reply(b"plain", headers={"Content-Encoding": "gzip"}), "incorrect header check"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_send__fault_of_the_wire__is_down_after_one_attempt(
    server: WireServer, client: HttpClient, fault: str
) -> None:
    reply, text = FAULTS[fault]
    server.answer = lambda _: reply
    with pytest.raises(Down, match=text) as caught:
        client.send(Call("things", timeouts=HASTY if reply.then in ("stall", "drip") else PATIENT))
    assert caught.value.message.startswith("things: ")
    assert len(server.calls) == 1
    server.answer = lambda _: Reply(b"ok")
    assert client.send(CALL) == b"ok", "the next call is not poisoned"


def test_send__nobody_listens__is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Down, match=rf"things: .*refused.* \(http://127.0.0.1:{port}\)"):
        HttpClient(f"http://127.0.0.1:{port}", errors=ERRORS).send(CALL)


@pytest.mark.parametrize(
    ("status", "reason_code"),
    [
        ("302 Found", "wrong_address"),
        ("307 Temporary Redirect", "wrong_address"),
        ("401 Unauthorized", "unauthorized"),
        ("403 Forbidden", "forbidden"),
        ("404 Not Found", "wrong_address"),
        ("405 Method Not Allowed", "wrong_address"),
        ("410 Gone", "wrong_address"),
        ("418 Teapot", "down"),
        ("429 Too Many Requests", "limited"),
        ("500 Internal Server Error", "failing"),
    ],
)
def test_send__status_of_a_refusal__becomes_its_type(
    server: WireServer, client: HttpClient, status: str, reason_code: str
) -> None:
    server.answer = lambda _: Reply(b"no", status, headers={"Location": f"{server.url}/elsewhere"})
    with pytest.raises((PermanentRunnerError, TransientResourceError), match=f"HTTP {status[:3]}") as caught:
        client.send(CALL)
    assert caught.value.reason_code == reason_code
    assert len(server.calls) == 1, "the secret follows no redirect"


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
def test_send__http_429__says_how_long_to_wait(
    server: WireServer, client: HttpClient, header: str, wait: timedelta
) -> None:
    server.answer = lambda _: Reply(status="429 Too Many Requests", headers={"Retry-After": header})
    with pytest.raises(Limited) as caught:
        client.send(CALL)
    assert caught.value.retry_after == wait


@pytest.mark.parametrize(
    ("body", "reason_code", "text"),
    [
        (b'{"number": 7}', None, ""),
        (b'{"other": 7}', "bad_body", "it lacks 'number'"),
        (b'{"number": "x"}', "bad_body", "invalid literal"),
        (b"[]", "bad_body", "the answer is no object"),
        (b'{"numb', "bad_body", "unexpected end of data"),
        (b"", "bad_body", "things: "),
        (b" <html>log in</html>", "wrong_address", "a web page instead of JSON"),
    ],
)
def test_read_json__body__is_read_or_refused(
    server: WireServer, client: HttpClient, body: bytes, reason_code: str | None, text: str
) -> None:
    server.answer = lambda _: Reply(body)
    read: Callable[[], int] = lambda: client.read_json(CALL, lambda found: int(found["number"]))  # noqa: E731
    if reason_code is None:
        assert read() == 7
        return
    with pytest.raises((PermanentRunnerError, TransientResourceError), match=text) as caught:
        read()
    assert caught.value.reason_code == reason_code
    assert caught.value.__context__ is None, "an error of the parser holds the whole body"


def test_pages__next_page_given__are_read_until_the_last(server: WireServer, client: HttpClient) -> None:
    server.answer = lambda call: Reply(b'{"next": null}' if "page=b" in call.path else b'{"next": "b"}')
    found = client.pages(CALL, lambda page: (page["next"], page["next"] and {"page": page["next"]}))
    assert list(found) == ["b", None]
    assert [call.path for call in server.calls] == ["/things", "/things?page=b"]


def test_pages__next_page_is_the_same__are_refused(server: WireServer, client: HttpClient) -> None:
    server.answer = lambda _: Reply(b"{}")
    with pytest.raises(BadBody, match="the next page is this one"):
        list(client.pages(CALL, lambda _: (1, {"page": "b"})))
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply(SECRET.encode(), "401 Unauthorized"),
        Reply(SECRET.encode(), "500 Internal Server Error"),
        Reply(b"x" * 1_990 + SECRET.encode(), "500 cut in the excerpt"),
        Reply(gzip.compress(b"busy", mtime=0), "502 packed and does not say so"),
        Reply(f"[{SECRET}".encode()),
        Reply(SECRET.encode() * 100, sent=9, then="reset"),
        Reply(SECRET.encode() * 100, sent=9, then="stall"),
    ],
)
def test_send__secret_echoed__is_in_no_message_chain_or_frame(server: WireServer, reply: Reply) -> None:
    server.answer = lambda _: reply
    client = HttpClient(server.url.replace("://", "://user:hidden@"), errors=ERRORS, secret=SECRET)
    with pytest.raises((PermanentRunnerError, TransientResourceError)) as caught:
        client.read_json(Call("things", timeouts=HASTY), lambda found: found)
    trace = caught.value.__traceback__
    assert trace is not None
    error = traceback.TracebackException(type(caught.value), caught.value, trace.tb_next, capture_locals=True)
    shown = "".join(error.format()) + repr(client) + caught.value.message
    assert SECRET[:12] not in shown
    assert "hidden" not in shown
    assert caught.value.message.isprintable()
    assert caught.value.__context__ is None


def test_receive__condition_holds__is_unchanged_with_its_headers(server: WireServer, client: HttpClient):
    server.answer = lambda _: Reply(status="304 Not Modified", headers={"ETag": '"7"'})
    received = client.receive(Call("things", headers={"If-None-Match": '"7"'}, timeouts=PATIENT))
    assert (received.unchanged, received.body, received.headers["etag"]) == (True, b"", '"7"')
    assert server.calls[0].headers["If-None-Match"] == '"7"'


def test_receive__new_content__has_body_and_headers(server: WireServer, client: HttpClient):
    server.answer = lambda _: Reply(b"new", headers={"ETag": '"8"'})
    received = client.receive(CALL)
    assert (received.unchanged, received.body, received.headers["ETag"]) == (False, b"new", '"8"')


def test_receive__half_an_answer__is_down(server: WireServer, client: HttpClient):
    server.answer = lambda _: Reply(b"0123456789", sent=5, then="close")
    with pytest.raises(Down):
        client.receive(CALL)


def test_send__304_that_nobody_asked_for__is_refused(server: WireServer, client: HttpClient):
    server.answer = lambda _: Reply(status="304 Not Modified")
    with pytest.raises(PermanentRunnerError):
        client.send(CALL)


def test_send__redirect__names_where_it_leads(server: WireServer, client: HttpClient):
    server.answer = lambda _: Reply(
        status="301 Moved", headers={"Location": f"https://elsewhere.example.org/a?token={SECRET}"}
    )
    with pytest.raises(PermanentRunnerError, match=r"https://elsewhere\.example\.org/a") as error:
        client.send(CALL)
    assert SECRET not in error.value.message
