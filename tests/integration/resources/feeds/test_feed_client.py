"""The client of a feed against an application on a real socket: what it reads, how it fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from domain.shared.error import InfrastructureError, PermanentRunnerError, TransientResourceError
from resources.feeds.answers import Change
from resources.feeds.client import FeedClient
from resources.feeds.errors import BadFeed, ChangedMeanwhile, FeedDown, FeedTokenRefused, WrongFeedAddress
from resources.http.faults import Timeouts
from sandbox.carbon.application import Answer, Application, Place, serving

TOKEN = "f00dfacecafe0123456789abcdef"
PLANE = Place("plane", 2025)


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


def test_changes__many_pages__lists_every_scope(client: FeedClient, application: Application) -> None:
    application.page_size = 2
    for year in range(2020, 2025):
        application.save(Place("plane", year, "other"), [])
    found = client.changes()
    assert [one.year for one in found] == [2020, 2021, 2022, 2023, 2024]
    assert found[0] == Change("manual", "other", "plane", 2020, "1")


def test_entries__values_of_several_pages__are_texts(client: FeedClient, application: Application) -> None:
    application.page_size = 2
    amounts = [1, 2.5, "3", None, True, {"a": 1}]
    rows = [{"entry_id": str(n), "distance": v} for n, v in enumerate(amounts)]
    application.save(PLANE, [*rows, {"entry_id": "x", "unit_id": "Ä", "note": "far"}])
    found = client.read("entries", 2025, "main", "plane")
    assert (found.version, found.rows.num_rows) == ("1", 7)
    assert found.rows.column("distance").to_pylist() == ["1", "2.5", "3", None, "true", '{"a":1}', None]
    assert found.rows.column("note").to_pylist() == [None] * 6 + ["far"]


def test_entries__none__are_an_empty_table(client: FeedClient, application: Application) -> None:
    application.save(PLANE, [])
    assert client.read("entries", 2025, "main", "plane").rows.num_rows == 0


def test_entries__changed_between_pages__are_refused(client: FeedClient, application: Application) -> None:
    application.page_size = 1
    application.save(PLANE, [{"entry_id": "a"}, {"entry_id": "b"}])
    application.on_page = lambda page: application.save(PLANE, [{"entry_id": "a"}] * 2) if page else None
    with pytest.raises(ChangedMeanwhile, match="from version 1 and 2 while"):
        client.read("entries", 2025, "main", "plane")


def changes(body: str) -> Answer:
    return Answer(200, f'{{"changes": [{body}]}}'.encode())


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (Answer(500, b"oops"), FeedDown, "HTTP 500"),
        (Answer(429, b"slowly"), FeedDown, "HTTP 429"),
        (Answer(401, b"?"), FeedTokenRefused, "HTTP 401"),
        (Answer(404, b"?"), WrongFeedAddress, "HTTP 404"),
        (Answer(200, b"<html>log in</html>", "text/html"), WrongFeedAddress, "a web page instead of JSON"),
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
def test_changes__unusable_answer__has_its_type(
    client: FeedClient, application: Application, fault: Answer, error: type[InfrastructureError], said: str
) -> None:
    application.fault = lambda _: fault
    with pytest.raises(error) as caught:
        client.changes()
    assert said in caught.value.message
    assert "127.0.0.1" in caught.value.message
    assert isinstance(caught.value, PermanentRunnerError if error in PERMANENT else TransientResourceError)


PERMANENT = (FeedTokenRefused, WrongFeedAddress)


def test_changes__retry_after__is_passed_on(client: FeedClient, application: Application) -> None:
    application.fault = lambda _: Answer(429, b"", headers={"Retry-After": "90"})
    with pytest.raises(FeedDown) as caught:
        client.changes()
    assert caught.value.retry_after == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"version": "1", "entries": {}}', "entries are no list"),
        (b'{"version": "1", "entries": [7]}', "one of entries is no object"),
        (b'{"version": "1", "entries": [{"unit_id": "A"}]}', "entries have no entry_id"),
        (b'{"entries": []}', "it lacks 'version'"),
        (b'{"version": "1", "entries": [], "next": ""}', "next is"),
        (b'{"version": null, "entries": []}', "version is no text"),
        (b'{"version": {"a": 1}, "entries": []}', "version is no text"),
        (b'{"version": "\\u001b[31m", "entries": []}', "characters that can be seen"),
    ],
)
def test_entries__wrong_shape__is_refused(
    client: FeedClient, application: Application, body: bytes, said: str
) -> None:
    application.fault = lambda _: Answer(200, body)
    with pytest.raises(BadFeed, match=said):
        client.read("entries", 2025, "main", "plane")


def test_entries__always_another_page__are_bounded(address: str, application: Application) -> None:
    client = FeedClient("manual", address, TOKEN, most_bytes=10_000)
    entry = b'{"entry_id": "%s"}' % (b"a" * 1_000)
    pages = iter(range(1, 10_000))
    application.fault = lambda _: Answer(
        200, b'{"version": "1", "entries": [%s], "next": %d}' % (entry, next(pages))
    )
    with pytest.raises(BadFeed, match="more than 0 MiB"):
        client.read("entries", 2025, "main", "plane")
    assert len(application.calls) < 20


@pytest.mark.parametrize("cursor", ['"%s"' % ("a" * 1_001), '{"a": 1}', '"\\u001b[31m"'])
def test_changes__unusable_cursor__is_refused(
    client: FeedClient, application: Application, cursor: str
) -> None:
    application.fault = lambda _: Answer(200, f'{{"changes": [], "cursor": {cursor}, "more": true}}'.encode())
    with pytest.raises(BadFeed, match="cursor is"):
        client.changes()


def test_changes__token_echoed__is_in_no_error_and_no_log(
    address: str, application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "0123456789-secret-of-ours"
    client = FeedClient("manual", address.replace("://", "://user:hidden@"), secret)
    for fault in (Answer(401, secret.encode()), Answer(500, secret.encode()), Answer(200, secret.encode())):
        application.fault = lambda _, fault=fault: fault  # type: ignore[misc]
        with pytest.raises(InfrastructureError) as caught:
            client.changes()
        assert secret not in repr(caught.value) + str(caught.value.__cause__) + caught.value.remedy
        assert "hidden" not in caught.value.message
    assert secret not in caplog.text + repr(client)
    assert "hidden" not in caplog.text + repr(client)


def test_fingerprint__other_origin_address_or_token__differs(address: str) -> None:
    known = {
        FeedClient(origin, url, token).fingerprint()
        for origin in ("api", "manual")
        for url in (address, "http://elsewhere")
        for token in ("", "a", "b")
    }
    assert len(known) == 12
