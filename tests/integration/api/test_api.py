"""The HTTP interface as programs meet it: a real server on a real socket, over a real home."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn

from domain.carbon.jobs import AGGREGATION
from domain.market.plan import FILL
from domain.shared.error import InvalidInput
from domain.shared.tabular.problems import FileRefused
from domain.shared.work import WorkRequest
from orchestration.api.app import build_app
from orchestration.api.serve import listening, serve
from orchestration.domains.carbon import open_carbon
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from services.carbon.upload import File, upload
from tests.settings import make_settings

TOKEN = "f00dfacecafe0123456789abcdef"
KEY = "carbon_reports:2025"
UNITS = b"unit_id,name,parent_id\nUNI,University,\nPHY,Physics,UNI\n"
TRAIN = b"unit_id,distance,passengers,country\nPHY,1000,2,CH\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(home=tmp_path / "home", source="sandbox", api_token=TOKEN)


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    ledger = open_ledger(settings, write=True)
    yield ledger
    ledger.close()


class Api:
    def __init__(self, address: str) -> None:
        self.address = address
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {TOKEN}"

    def get(self, path: str) -> requests.Response:
        return self.session.get(self.address + path, timeout=30)

    def post(self, path: str, body: bytes = b"", **asked: str) -> requests.Response:
        return self.session.post(self.address + path, data=body, params=asked, timeout=30)

    def upload(self, body: bytes, **asked: str) -> requests.Response:
        return self.post("/carbon/uploads", body, **asked)


@pytest.fixture
def api(settings: Settings) -> Iterator[Api]:
    with serving(settings) as api:
        yield api


@contextmanager
def serving(settings: Settings) -> Iterator[Api]:
    place = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(settings), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
    thread.start()
    api = Api(f"http://127.0.0.1:{place.getsockname()[1]}")
    yield api
    api.session.close()
    server.should_exit = True
    thread.join()
    place.close()


def a_job(ledger: Ledger) -> int:
    [row] = ledger.enqueue([WorkRequest(kind=AGGREGATION, key=KEY, fingerprint="f")]).created
    return row.id


def test_a_job_is_shown_with_its_history(api: Api, ledger: Ledger) -> None:
    told = api.get(f"/sync/jobs/{a_job(ledger)}").json()
    assert (told["kind"], told["key"], told["status"]) == (AGGREGATION, KEY, "queued")
    assert [event["event"] for event in told["events"]] == ["created"]


def test_a_job_that_failed_is_queued_again_under_a_new_id(api: Api, ledger: Ledger) -> None:
    number = a_job(ledger)
    with ledger.lease(AGGREGATION, [KEY], "run", heartbeat=False) as lease:
        lease.fail(KEY, "no")
    answer = api.post(f"/sync/jobs/{number}/recover")
    assert answer.status_code == 200
    assert answer.json()["status"] == "queued"
    assert answer.json()["id"] > number


def test_a_live_job_is_left_alone(api: Api, ledger: Ledger) -> None:
    number = a_job(ledger)
    with ledger.lease(AGGREGATION, [KEY], "run", heartbeat=False):
        answer = api.post(f"/sync/jobs/{number}/recover")
        assert answer.status_code == 409
        assert answer.json()["reason_code"] == "already_running"


def test_a_job_whose_worker_is_dead_is_queued_again(api: Api, settings: Settings, ledger: Ledger) -> None:
    [row] = ledger.enqueue(
        [WorkRequest(kind=FILL, key="normalized_daily:2026-11-17", fingerprint="f")]
    ).created
    number = row.id
    past = datetime.now(UTC) - timedelta(minutes=10)
    old = Ledger.open(
        settings.database_url, kinds=ledger.kinds.values(), clock=ledger.clock, machine_clock=lambda: past
    )
    assert [row.id for row in old.claim(FILL, holder="worker:dead", limit=1)] == [number]
    old.close()
    answer = api.post(f"/sync/jobs/{number}/recover")
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["status"]) == (number, "queued")


def test_a_job_that_waits_becomes_due_now(api: Api, ledger: Ledger) -> None:
    number = a_job(ledger)
    with ledger.lease(AGGREGATION, [KEY], "run", heartbeat=False) as lease:
        lease.defer(KEY, "later", not_before=datetime.now(UTC) + timedelta(days=1))
    assert api.post(f"/sync/jobs/{number}/recover").status_code == 200
    row = ledger.get(number)
    assert row is not None
    assert row.not_before is None or row.not_before <= datetime.now(UTC)


def test_a_job_there_is_not(api: Api, ledger: Ledger) -> None:
    assert api.get("/sync/jobs/77").status_code == 404
    assert api.post("/sync/jobs/77/recover").status_code == 404
    assert api.get("/sync/jobs/seven").status_code == 404
    assert api.get("/sync/jobs/1/recover").status_code == 405


def test_a_file_is_taken_in_once_and_begins_its_chain(api: Api, settings: Settings) -> None:
    first = api.upload(UNITS, kind="units", year="2025", name="tree.csv", by="ada")
    assert first.status_code == 201, first.text
    told = first.json()
    assert (told["file"], told["rows"], told["years"]) == ("tree.csv", 2, [2025])
    assert api.get(f"/sync/jobs/{told['jobs'][0]}").json()["kind"] == "carbon.unit_sync"
    again = api.upload(UNITS, kind="units", year="2025", name="tree.csv")
    assert (again.status_code, again.json()["known_already"]) == (200, True)
    [kept] = open_carbon(settings).store.uploads.find()
    assert kept.uploaded_by == "api: ada", "so the caller said"


def test_a_refused_file_lists_its_problems_and_changes_nothing(api: Api, settings: Settings) -> None:
    api.upload(UNITS, kind="units", year="2025")
    wrong = TRAIN + b"XXX,-1,1,CH\n"
    answer = api.upload(wrong, kind="data", type="train", year="2025")
    assert answer.status_code == 422
    assert {(p["line"], p["column"]) for p in answer.json()["problems"]} == {(3, "unit_id"), (3, "distance")}
    assert len(open_carbon(settings).store.uploads.find(accepted=True)) == 1
    taken = api.upload(wrong, kind="data", type="train", year="2025", accept_valid="true")
    assert (taken.status_code, taken.json()["taken"]) == (201, 1)


@pytest.mark.parametrize("year", [1066, 2051, 10**20])
def test_a_year_there_is_none_of_is_a_problem_of_the_file_and_noted_as_no_year(
    api: Api, settings: Settings, year: int
) -> None:
    if year < 10_000:
        assert api.upload(UNITS, kind="units", year=str(year)).status_code == 422
    carbon = open_carbon(settings, write=True)
    with pytest.raises(FileRefused):
        upload(carbon, File("units", "tree.csv", UNITS, "ada", year=year))
    assert {one.years for one in carbon.store.uploads.find()} == {()}


def test_a_locked_year_takes_nothing(api: Api, settings: Settings, ledger: Ledger) -> None:
    open_carbon(settings, write=True).store.year_locks.lock(2025, "ada", "published")
    answer = api.upload(UNITS, kind="units", year="2025")
    assert (answer.status_code, answer.json()["reason_code"]) == (409, "year_locked")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "kind is ''"),
        ({"kind": "money"}, "kind is 'money'"),
        ({"kind": "units", "year": "soon"}, "year is 'soon'"),
        ({"kind": "units", "year": "9" * 20}, "year is '99999999999999999999'"),
        ({"kind": "units", "year": "9" * 5000}, "year is '9999"),
        ({"kind": "units", "institution": "a|b:c\x1b[2J"}, "the institution is 'a|b:c\\x1b[2J'"),
        ({"kind": "units", "name": "a\x1b[2J"}, "the file name is 'a\\x1b[2J'"),
        ({"kind": "units", "by": "anna\n"}, "by is 'anna\\n'"),
        ({"kind": "units", "by": "x" * 201}, "200 characters"),
        ({"kind": "units", "type": "\x1b"}, "the type is '\\x1b'"),
        ({"kind": "data", "decimal": "dot"}, "decimal is 'dot'"),
        ({"kind": "units", "instituion": "other"}, "'instituion' is nothing that can be said of a file"),
        ({"kind": "units", "year": ["2024", "2025"]}, "'year' is given more than once"),
        ({"kind": "data", "type": "zeppelin", "year": "2025"}, "no data entry type 'zeppelin'"),
    ],
)
def test_a_wrong_question_is_told_with_the_right_one(api: Api, asked: dict[str, Any], said: str) -> None:
    answer = api.upload(TRAIN, **asked)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert answer.json()["remedy"]


def test_every_error_is_json_with_a_remedy(api: Api, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ledger.get(10**20) is None
    with pytest.raises(InvalidInput, match="there is no work"):
        ledger.cancel(10**20)
    large = "9" * 20
    found = [
        (api.get(f"/sync/jobs/{large}"), 404),
        (api.post(f"/sync/jobs/{large}/recover"), 404),
        (api.get("/nowhere"), 404),
        (api.get("/carbon/uploads"), 405),
    ]
    monkeypatch.setattr("orchestration.api.app._job", lambda *_: 1 / 0)
    found.append((api.get("/sync/jobs/1"), 500))
    for answer, status in found:
        assert answer.status_code == status, answer.url
        told = answer.json()
        assert told["error"]
        assert told["reason_code"]
        assert "remedy" in told
    assert found[3][0].headers["allow"] == "POST"
    assert "division" not in found[-1][0].text, "what is inside is not told"


OTHERS = [
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "http://localhost:8888"}, 403),
    ({"Origin": "null"}, 403),
    ({"Host": "evil.example"}, 403),
    ({"Host": "evil.example:3001", "Origin": "http://evil.example:3001"}, 403),
    ({"Host": "localhost.evil.example"}, 403),
    ({"Host": "[broken"}, 403),
    ({"Host": "localhost:3001"}, 201),
    ({"Host": "[::1]:3001", "Origin": "http://[::1]:3001"}, 201),
    ({}, 201),
]


@pytest.mark.parametrize(("headers", "status"), OTHERS, ids=str)
def test_without_a_token_no_page_of_a_browser_is_answered(
    settings: Settings, headers: dict[str, str], status: int
) -> None:
    with serving(make_settings(settings, api_token="")) as api:
        del api.session.headers["Authorization"]
        api.session.headers.update({"Content-Type": "text/plain", **headers})
        answer = api.upload(UNITS, kind="units", year="2025")
    assert answer.status_code == status, answer.text
    assert len(open_carbon(settings, write=True).store.uploads.find()) == (status == 201)
    if status == 403:
        assert answer.json()["reason_code"] == "foreign_page"


def test_with_a_token_any_name_of_this_machine_will_do(api: Api) -> None:
    api.session.headers["Host"] = "carbon.example"
    assert api.upload(UNITS, kind="units", year="2025").status_code == 201


@pytest.mark.parametrize("said", ["", "Bearer wrong", TOKEN, f"bearer {TOKEN}", "Bearer ä"])
def test_nobody_gets_in_without_the_token(api: Api, ledger: Ledger, said: str) -> None:
    number = a_job(ledger)
    job = f"/sync/jobs/{number}"
    for method, path in (("GET", job), ("POST", f"{job}/recover"), ("POST", "/carbon/uploads")):
        answer = requests.request(
            method, api.address + path, headers={"Authorization": said.encode("latin-1")}, timeout=30
        )
        assert answer.status_code == 401
        assert TOKEN not in answer.text


def test_it_does_not_listen_to_everybody_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="could upload") as told:
        serve(make_settings(home=tmp_path, source="sandbox", api_host="0.0.0.0"))
    assert "PERENNIAL_API_TOKEN" in told.value.remedy


def test_a_port_in_use_names_its_setting() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InvalidInput, match="cannot listen on 127") as told,
    ):
        listening("127.0.0.1", taken.getsockname()[1])
    assert "PERENNIAL_API_PORT" in told.value.remedy


def test_a_call_by_another_name_is_told_and_sent_nowhere(api: Api) -> None:
    answer = api.session.post(f"{api.address}/carbon/uploads/", data=UNITS, timeout=30, allow_redirects=False)
    assert (answer.status_code, answer.json()["reason_code"]) == (404, "no_such_call")


def test_institutions_whose_names_cannot_be_read_are_refused(api: Api) -> None:
    place = f"{api.address}/carbon/uploads?kind=units&year=2025&institution=Z%FCrich"
    answer = api.session.post(place, data=UNITS, timeout=30)
    assert answer.status_code == 400
    assert "not in UTF-8" in answer.json()["error"]


def test_who_hangs_up_in_the_middle_of_a_file_leaves_no_stack_trace(
    api: Api, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    host, port = api.address.removeprefix("http://").split(":")
    head = f"POST /carbon/uploads?kind=units&year=2025 HTTP/1.1\r\nHost: {host}\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as caller:
        caller.sendall(f"{head}Authorization: Bearer {TOKEN}\r\nContent-Length: 1000\r\n\r\nunit_id".encode())
    assert api.upload(UNITS, kind="units", year="2025").status_code == 201, "the next one is heard"
    assert not [record for record in caplog.records if record.exc_info]
    assert len(open_carbon(settings).store.uploads.find()) == 1
