"""The client of a feed, with an application on a real socket: what it reads, what it makes of trouble."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pyarrow as pa
import pytest

from domain.carbon.feeds import FeedChange
from domain.shared.error import InfrastructureError, PermanentRunnerError, TransientResourceError
from resources.feeds.client import FeedClient, feeds
from resources.feeds.errors import BadFeed, ChangedMeanwhile, FeedDown, FeedTokenRefused, WrongFeedAddress
from resources.wire.http import Timeouts
from sandbox.carbon.application import Answer, Application, Place, serving

TOKEN = "f00dfacecafe0123456789abcdef"
PLANE = Place("plane", 2025)
HEARD = FeedChange("manual", "main", "plane", 2025, "1")


@pytest.fixture
def application() -> Application:
    return Application(token=TOKEN)


@pytest.fixture
def address(application: Application) -> Iterator[str]:
    with serving(application) as url:
        yield url


@pytest.fixture
def client(address: str) -> FeedClient:
    return FeedClient("manual", address, TOKEN, timeouts=Timeouts(connect=5, read=5, total=10))


def test_changes_are_told_since_a_cursor(client: FeedClient, application: Application) -> None:
    application.save(PLANE, [])
    application.save(Place("train", 2024, "other"), [])
    first = client.changes()
    assert set(first.places) == {HEARD, FeedChange("manual", "other", "train", 2024, "1")}
    application.save(PLANE, [])
    [again] = client.changes(first.cursor).places
    assert again == FeedChange("manual", "main", "plane", 2025, "2")


def test_many_changes_come_in_pages_and_patience_ends_between_two(
    client: FeedClient, application: Application
) -> None:
    application.page_size = 2
    for year in range(2020, 2025):
        application.save(Place("plane", year), [])
    assert [one.year for one in client.changes().places] == [2020, 2021, 2022, 2023, 2024]
    first = client.changes(patience=-1)
    assert ([one.year for one in first.places], first.cursor) == ([2020, 2021], "2")
    assert [one.year for one in client.changes(first.cursor).places] == [2022, 2023, 2024]


def test_entries_come_page_by_page_with_the_types_they_have(
    client: FeedClient, application: Application
) -> None:
    application.page_size = 2
    rows = [{"entry_id": str(n), "unit_id": "A", "distance": n, "round_trip": n % 2 == 0} for n in range(5)]
    application.save(PLANE, [*rows, {"entry_id": "x", "unit_id": "Ä", "note": "far"}])
    found = client.entries(HEARD)
    assert (found.version, found.rows.num_rows) == ("1", 6)
    assert found.rows.schema.field("distance").type == pa.int64()
    assert found.rows.column("round_trip").to_pylist() == [True, False, True, False, True, None]
    assert found.rows.column("note").to_pylist() == [None] * 5 + ["far"]


def test_a_number_here_and_a_word_there_is_words(client: FeedClient, application: Application) -> None:
    application.page_size = 2
    amounts = [1, 2.5, "3", None, True, {"a": 1}]
    application.save(PLANE, [{"entry_id": str(n), "distance": v} for n, v in enumerate(amounts)])
    assert client.entries(HEARD).rows.column("distance").to_pylist() == [
        "1", "2.5", "3", None, "true", '{"a":1}',
    ]  # fmt: skip


def test_a_place_without_entries_has_none(client: FeedClient, application: Application) -> None:
    application.save(PLANE, [])
    assert client.entries(HEARD).rows.num_rows == 0


def test_what_changed_between_pages_is_to_be_read_again(client: FeedClient, application: Application) -> None:
    application.page_size = 1
    application.save(PLANE, [{"entry_id": "a"}, {"entry_id": "b"}])
    application.on_page = lambda page: application.save(PLANE, [{"entry_id": "a"}] * 2) if page else None
    with pytest.raises(ChangedMeanwhile, match="was 1 and 2 while it was read"):
        client.entries(HEARD)


def changes(body: str) -> Answer:
    return Answer(200, f'{{"changes": [{body}]}}'.encode())


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (Answer(500, b"oops"), FeedDown, "HTTP 500"),
        (Answer(503, b"busy"), FeedDown, "HTTP 503"),
        (Answer(429, b"slowly"), FeedDown, "HTTP 429"),
        (Answer(401, b"?"), FeedTokenRefused, "HTTP 401"),
        (Answer(403, b"?"), FeedTokenRefused, "HTTP 403"),
        (Answer(404, b"?"), WrongFeedAddress, "HTTP 404"),
        (Answer(302, b""), WrongFeedAddress, "HTTP 302"),
        (Answer(200, b"<html>log in</html>", "text/html"), WrongFeedAddress, "a page answers"),
        (Answer(200, b'{"changes": [{"ye'), BadFeed, "unexpected end of data"),
        (Answer(200, b""), BadFeed, "changes: "),
        (Answer(200, b"[]"), BadFeed, "the answer is no object"),
        (Answer(200, b'{"entries": []}'), BadFeed, "it lacks 'changes'"),
        (Answer(200, b'{"changes": 7}'), BadFeed, "changes: "),
        (Answer(200, b'{"changes": [7]}'), BadFeed, "a change is no object"),
        (Answer(200, b'{"changes": [], "cursor": "", "more": true}'), BadFeed, "no cursor that leads on"),
        (changes('{"data_entry_type": "train", "year": 3000}'), BadFeed, "the year '3000'"),
        (changes('{"data_entry_type": "train", "year": "2025"}'), BadFeed, "the year '2025'"),
        (changes('{"year": 2025, "institution": "main"}'), BadFeed, "it lacks 'data_entry_type'"),
        (
            changes('{"year": 2025, "institution": "a|b", "data_entry_type": "x", "version": "1"}'),
            BadFeed,
            "may not be in it",
        ),
        (
            changes('{"year": 2025, "institution": "main", "data_entry_type": "x", "version": null}'),
            BadFeed,
            "version is no text",
        ),
        (
            changes('{"year": 2025, "institution": "", "data_entry_type": "x", "version": "1"}'),
            BadFeed,
            "1 to 200 characters",
        ),
    ],
)  # fmt: skip
def test_trouble_is_told_in_its_own_words_and_class(
    client: FeedClient, application: Application, fault: Answer, error: type[InfrastructureError], said: str
) -> None:
    application.fault = lambda _: fault
    with pytest.raises(error) as told:
        client.changes()
    assert said in told.value.message
    assert "127.0.0.1" in told.value.message
    assert isinstance(told.value, PermanentRunnerError if error in PERMANENT else TransientResourceError)


PERMANENT = (FeedTokenRefused, WrongFeedAddress)


def test_how_long_to_wait_is_heard(client: FeedClient, application: Application) -> None:
    application.fault = lambda _: Answer(429, b"", headers={"Retry-After": "90"})
    with pytest.raises(FeedDown) as told:
        client.changes()
    assert told.value.retry_after == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"version": "1", "entries": {}}', "entries are no list"),
        (b'{"version": "1", "entries": [7]}', "an entry is no object"),
        (b'{"version": "1", "entries": [{"unit_id": "A"}]}', "entries have no entry_id"),
        (b'{"entries": []}', "it lacks 'version'"),
        (b'{"version": "1", "entries": [], "next": ""}', "the next page is this one"),
        (b'{"version": null, "entries": []}', "version is no text"),
        (b'{"version": {"a": 1}, "entries": []}', "version is no text"),
        (b'{"version": "\\u001b[31m", "entries": []}', "characters that can be seen"),
    ],
)
def test_entries_that_are_none_are_refused(
    client: FeedClient, application: Application, body: bytes, said: str
) -> None:
    application.fault = lambda _: Answer(200, body)
    with pytest.raises(BadFeed, match=said):
        client.entries(HEARD)


def test_an_application_that_always_has_another_page_is_not_held_in_memory(
    address: str, application: Application
) -> None:
    client = FeedClient("manual", address, TOKEN, most=10_000)
    entry = b'{"entry_id": "%s"}' % (b"a" * 1_000)
    pages = iter(range(1, 10_000))
    application.fault = lambda _: Answer(
        200, b'{"version": "1", "entries": [%s], "next": %d}' % (entry, next(pages))
    )
    with pytest.raises(BadFeed, match="a place of more than"):
        client.entries(HEARD)
    assert len(application.calls) < 20


@pytest.mark.parametrize("cursor", ['"%s"' % ("a" * 1_001), '{"a": 1}', '"\\u001b[31m"'])
def test_a_cursor_that_cannot_go_back_in_an_address_is_not_kept(
    client: FeedClient, application: Application, cursor: str
) -> None:
    application.fault = lambda _: Answer(200, f'{{"changes": [], "cursor": {cursor}}}'.encode())
    with pytest.raises(BadFeed, match="cursor is"):
        client.changes()


def test_what_a_stranger_says_in_place_of_http_commands_no_terminal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def answer() -> None:
            line, _ = stranger.accept()
            with line:
                line.recv(10_000)
                line.sendall(b"\x1b]0;owned\x07\x1b[2J welcome\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(FeedDown) as told:
            FeedClient("manual", f"http://127.0.0.1:{stranger.getsockname()[1]}").changes()
        thread.join()
    assert told.value.message.isprintable()
    assert "welcome" in told.value.message


def test_nobody_answers(client: FeedClient, address: str) -> None:
    far = FeedClient("manual", "http://127.0.0.1:1", TOKEN)
    with pytest.raises(FeedDown, match="Connection refused"):
        far.changes()


def test_the_token_is_in_no_error_and_no_log(
    address: str, application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "0123456789-secret-of-ours"
    client = FeedClient("manual", address.replace("://", "://user:hidden@"), secret)
    for fault in (Answer(401, secret.encode()), Answer(500, secret.encode()), Answer(200, secret.encode())):
        application.fault = lambda _, fault=fault: fault  # type: ignore[misc]
        with pytest.raises(InfrastructureError) as told:
            client.changes()
        assert secret not in repr(told.value) + str(told.value.__cause__) + told.value.remedy
        assert "hidden" not in told.value.message
    assert secret not in caplog.text + repr(client)
    assert "hidden" not in caplog.text + repr(client)


def test_other_addresses_and_tokens_are_other_applications(address: str) -> None:
    known = {
        FeedClient(origin, url, token).fingerprint()
        for origin in ("api", "manual")
        for url in (address, "http://elsewhere")
        for token in ("", "a", "b")
    }
    assert len(known) == 12


def test_only_what_has_an_address_is_there() -> None:
    assert feeds(manual=("", "token"), api=("", "")) == {}
    assert list(feeds(manual=("http://localhost", ""), api=("", ""))) == ["manual"]
