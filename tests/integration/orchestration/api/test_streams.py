"""Pipelines and their streams over HTTP: a real server, a real home, real clients."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from domain.market.plan import FILL
from domain.shared.work import WorkRequest
from orchestration.api.app import build_app
from orchestration.api.server import ApiServer
from orchestration.api.watching import Hub
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from resources.ledger.pipelines import new_pipeline_id
from tests.serving import serving
from tests.settings import make_settings

KEY = "normalized_daily:2026-11-17"
UNKNOWN = "01M7WRPGPY805SWQ78BEHEER0R"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(home=tmp_path / "home", source="sandbox", api_streams=3)


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    ledger = open_ledger(settings, write=True)
    yield ledger
    ledger.close()


@pytest.fixture
def served(settings: Settings, ledger: Ledger) -> Iterator[tuple[str, Hub]]:
    assert ledger.get(1) is None
    with serving(settings) as served:
        yield served


@pytest.fixture
def client(served: tuple[str, Hub]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served[0], timeout=10) as client:
        yield client


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.005)


def begin(ledger: Ledger, key: str = KEY) -> tuple[str, int]:
    """A pipeline with one work item."""
    name = new_pipeline_id()
    [row] = ledger.enqueue([WorkRequest(FILL, key, "f", pipelines=(name,))]).created
    return name, row.id


def events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """Server-sent events as they come."""
    event: dict[str, Any] = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            event[name] = value
        elif "data" in event:
            yield event | {"data": json.loads(event["data"])}
            event = {}


def test_stream__pipeline_runs_and_ends__follows_it(client: httpx.Client, ledger: Ledger) -> None:
    name, _ = begin(ledger)
    with client.stream("GET", f"/pipelines/{name}/stream") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream"), answer.read()
        following = events(answer)
        first = next(following)
        assert (first["event"], first["data"]["status"]) == ("state", "NOT_STARTED")
        assert first["data"] == {
            k: v for k, v in client.get(f"/pipelines/{name}").json().items() if k not in ("members", "total")
        }
        with ledger.lease(FILL, [KEY], "run", heartbeat=False) as held:
            assert next(following)["data"]["work"] == {FILL: {"running": 1}}
            held.complete(KEY)
        last = next(following)
        assert (last["event"], last["data"]["status"]) == ("end", "SUCCESS")
        assert next(following, None) is None, "the stream closes"


def test_stream__job__follows_it(client: httpx.Client, ledger: Ledger) -> None:
    _, number = begin(ledger)
    with client.stream("GET", f"/sync/jobs/{number}/stream") as answer:
        following = events(answer)
        assert next(following)["data"]["status"] == "queued"
        ledger.cancel(number)
        last = next(following)
        assert (last["event"], last["data"]["status"], last["data"]["id"]) == ("end", "cancelled", number)


def test_stream__last_event_id__sends_only_what_is_newer(client: httpx.Client, ledger: Ledger) -> None:
    name, _ = begin(ledger)
    path = f"/pipelines/{name}/stream"
    with client.stream("GET", path) as answer:
        known = next(events(answer))["id"]
    with client.stream("GET", path, headers={"Last-Event-ID": known}) as answer:
        following = events(answer)
        with ledger.lease(FILL, [KEY], "run", heartbeat=False):
            newer = next(following)
            assert newer["data"]["status"] == "RUNNING"
            assert newer["id"] != known


def test_stream__client_goes__is_forgotten(
    client: httpx.Client, served: tuple[str, Hub], ledger: Ledger
) -> None:
    name, _ = begin(ledger)
    hub = served[1]
    with client.stream("GET", f"/pipelines/{name}/stream") as answer:
        following = events(answer)
        next(following)
        assert hub.listening == 1
    until(lambda: hub.listening == 0 and hub._task is None)
    reads = hub.reads
    time.sleep(0.6)
    assert hub.reads == reads, "nothing is read while nobody watches"


def test_stream__clients_that_never_read__hold_nobody(
    client: httpx.Client, served: tuple[str, Hub], ledger: Ledger
) -> None:
    name, _ = begin(ledger)
    host, port = served[0].removeprefix("http://").split(":")
    path = f"/pipelines/{name}/stream"
    silent = [socket.create_connection((host, int(port))) for _ in range(2)]
    for one in silent:
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    until(lambda: served[1].listening == 2)
    with client.stream("GET", path) as answer:
        following = events(answer)
        next(following)
        with ledger.lease(FILL, [KEY], "run", heartbeat=False) as held:
            begun = time.monotonic()
            next(following)
            held.complete(KEY)
        assert next(following)["event"] == "end"
        assert time.monotonic() - begun < 5
    for one in silent:
        one.close()
    until(lambda: served[1].listening == 0)


def test_stream__too_many__is_refused_and_later_taken(client: httpx.Client, ledger: Ledger) -> None:
    name, _ = begin(ledger)
    path = f"/pipelines/{name}/stream"
    with client.stream("GET", path), client.stream("GET", path), client.stream("GET", path):
        refused = client.get(path)
        assert (refused.status_code, refused.json()["code"]) == (503, "too_many_streams")
        assert int(refused.headers["Retry-After"]) > 0
        assert client.get(f"/pipelines/{name}").status_code == 200
    until(lambda: client.get(f"/pipelines/{UNKNOWN}/stream").status_code == 404)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (f"/pipelines/{UNKNOWN}", 404, "unknown_pipeline"),
        (f"/pipelines/{UNKNOWN}/stream", 404, "unknown_pipeline"),
        ("/sync/jobs/77/stream", 404, "unknown_work"),
        (f"/sync/jobs/{'9' * 20}/stream", 404, "unknown_work"),
        ("/pipelines/nonsense/stream", 422, "invalid_request"),
        ("/pipelines/..%2F..%2Fetc%2Fpasswd", 404, "no_such_call"),
        ("/pipelines?domain=weather", 422, "invalid_input"),
        ("/pipelines?status=odd", 422, "invalid_request"),
        ("/pipelines?limit=0", 422, "invalid_request"),
        ("/pipelines?before=yesterday", 422, "invalid_request"),
        ("/sync/jobs/0/stream", 422, "invalid_request"),
    ],
)
def test_call__unknown_or_invalid__names_it(client: httpx.Client, path: str, status: int, code: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_pipelines__newest_first__with_filters_and_pages(client: httpx.Client, ledger: Ledger) -> None:
    names = [begin(ledger, f"normalized_daily:2026-11-{day}")[0] for day in (16, 17, 18)]
    page = client.get("/pipelines", params={"limit": 2}).json()
    assert [one["pipeline_id"] for one in page["pipelines"]] == sorted(names, reverse=True)[:2]
    rest = client.get("/pipelines", params={"before": page["more_before"], "status": "NOT_STARTED"}).json()
    assert ([one["pipeline_id"] for one in rest["pipelines"]], rest["more_before"]) == ([min(names)], None)
    assert client.get("/pipelines", params={"domain": "carbon"}).json()["pipelines"] == []


def test_pipeline__members__say_why_and_how_often(client: httpx.Client, ledger: Ledger) -> None:
    name, number = begin(ledger)
    with ledger.lease(FILL, [KEY], "run", heartbeat=False) as held:
        held.fail(KEY, "hopeless")
    found = client.get(f"/pipelines/{name}").json()
    assert (found["status"], found["total"]) == ("FAILED", 1)
    [member] = found["members"]
    assert (member["id"], member["status"], member["attempts"], member["error"]) == (
        number,
        "failed",
        1,
        "hopeless",
    )
    assert client.get(f"/pipelines/{name}", params={"offset": 1}).json()["members"] == []


def test_serve__streams_are_open__stops_at_once(settings: Settings, ledger: Ledger) -> None:
    name, _ = begin(ledger)
    with httpx.Client() as client:
        with serving(settings) as (address, _):
            request = client.build_request("GET", f"{address}/pipelines/{name}/stream")
            answer = client.send(request, stream=True)
            following = events(answer)
            next(following)
            stopping = time.monotonic()
        assert time.monotonic() - stopping < 3
        assert next(following, None) is None, "it ended in order"


def test_stream__ledger_is_away__is_refused_as_every_call(settings: Settings) -> None:
    away = make_settings(settings, database_url="postgresql://perennial@127.0.0.1:1/ledger")
    with serving(away) as (address, hub), httpx.Client(base_url=address, timeout=30) as client:
        for path in (f"/pipelines/{UNKNOWN}/stream", f"/pipelines/{UNKNOWN}", "/sync/jobs/1/stream"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (503, "ledger_unavailable"), path
        until(lambda: hub.listening == 0)


def test_server__idle_connection__is_kept_longer_than_by_clients(settings: Settings) -> None:
    """With 5 s on both sides, calls met connections that the server closed at that moment."""
    assert ApiServer(build_app(settings)).config.timeout_keep_alive > httpx.Limits().keepalive_expiry
