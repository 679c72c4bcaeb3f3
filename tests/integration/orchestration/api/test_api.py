"""The HTTP interface: a real server on a real socket, over a real home."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from domain.carbon.jobs import AGGREGATION
from domain.market.plan import FILL
from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from orchestration.api.serve import listening, serve
from orchestration.domains.carbon import open_carbon
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from tests.integration.orchestration.api.conftest import TOKEN, Api, serving
from tests.settings import make_settings

KEY = "carbon_reports:2025"
UNITS = b"unit_id,name,parent_id\nUNI,University,\nPHY,Physics,UNI\n"
TRAIN = b"unit_id,distance,passengers,country\nPHY,1000,2,CH\n"


def a_job(ledger: Ledger) -> int:
    [row] = ledger.enqueue([WorkRequest(kind=AGGREGATION, key=KEY, fingerprint="f")]).created
    return row.id


def test_job__queued__is_shown_with_its_history(api: Api, ledger: Ledger) -> None:
    answered = api.get(f"/sync/jobs/{a_job(ledger)}").json()
    assert (answered["kind"], answered["key"], answered["status"]) == (AGGREGATION, KEY, "queued")
    assert [event["event"] for event in answered["events"]] == ["created"]


def test_recover__failed__is_queued_again_under_a_new_id(api: Api, ledger: Ledger) -> None:
    number = a_job(ledger)
    with ledger.lease(AGGREGATION, [KEY], "run", heartbeat=False) as lease:
        lease.fail(KEY, "no")
    answer = api.post(f"/sync/jobs/{number}/recover")
    assert answer.status_code == 202
    assert answer.json()["status"] == "queued"
    assert answer.json()["job_id"] == answer.json()["id"] > number


def test_recover__live_worker__is_refused(api: Api, ledger: Ledger) -> None:
    number = a_job(ledger)
    with ledger.lease(AGGREGATION, [KEY], "run", heartbeat=False):
        answer = api.post(f"/sync/jobs/{number}/recover")
        assert answer.status_code == 409
        assert answer.json()["code"] == "already_running"


def test_recover__dead_worker__is_queued_again(api: Api, settings: Settings, ledger: Ledger) -> None:
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
    assert answer.status_code == 202
    assert (answer.json()["id"], answer.json()["status"]) == (number, "queued")


def test_job__unknown_id__is_not_found(api: Api, ledger: Ledger) -> None:
    assert ledger.get(10**20) is None
    for number in ("77", "9" * 20):
        assert api.get(f"/sync/jobs/{number}").status_code == 404
        assert api.post(f"/sync/jobs/{number}/recover").status_code == 404
    for word in ("seven", "-1", "9" * 5000):
        assert api.get(f"/sync/jobs/{word}").json()["errors"][0]["field"] == "id"
    assert api.get("/sync/jobs/1/recover").status_code == 405


def test_upload__same_file_twice__is_imported_once(api: Api, settings: Settings) -> None:
    first = api.upload(UNITS, kind="units", year="2025", name="tree.csv", by="ada")
    assert first.status_code == 202, first.text
    answered = first.json()
    assert (answered["file"], answered["rows"], answered["years"]) == ("tree.csv", 2, [2025])
    assert api.get(f"/sync/jobs/{answered['jobs'][0]}").json()["kind"] == "carbon.unit_sync"
    again = api.upload(UNITS, kind="units", year="2025", name="tree.csv")
    assert (again.status_code, again.json()["known_already"]) == (202, True)
    [kept] = open_carbon(settings).store.uploads.find()
    assert kept.uploaded_by == "api: ada"


def test_upload__bad_rows__lists_the_problems_and_changes_nothing(api: Api, settings: Settings) -> None:
    api.upload(UNITS, kind="units", year="2025")
    wrong = TRAIN + b"XXX,-1,1,CH\n"
    answer = api.upload(wrong, kind="data", type="train", year="2025")
    assert answer.status_code == 422
    assert {(p["line"], p["column"]) for p in answer.json()["problems"]} == {(3, "unit_id"), (3, "distance")}
    assert len(open_carbon(settings).store.uploads.find(accepted=True)) == 1
    taken = api.upload(wrong, kind="data", type="train", year="2025", accept_valid="true")
    assert (taken.status_code, taken.json()["taken"]) == (202, 1)


def test_upload__most_rows_would_go__is_refused_without_replace(api: Api) -> None:
    three = b"unit_id,name\nA,a\nB,b\nC,c\n"
    assert api.upload(three, kind="units", year="2025").status_code == 202
    one = b"unit_id,name\nA,a\n"
    refused = api.upload(one, kind="units", year="2025")
    assert (refused.status_code, refused.json()["code"]) == (409, "would_shrink")
    assert "replace=true" in refused.json()["remedy"]
    taken = api.upload(one, kind="units", year="2025", replace="true")
    assert (taken.status_code, taken.json()["replaced"][0]["rows_before"]) == (202, 3)


def test_upload__locked_year__is_refused(api: Api, settings: Settings, ledger: Ledger) -> None:
    open_carbon(settings, write=True).store.year_locks.lock(2025, "ada", "published")
    answer = api.upload(UNITS, kind="units", year="2025")
    assert (answer.status_code, answer.json()["code"]) == (409, "year_locked")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "kind: Field required"),
    ({"kind": "money"}, "kind: Input should be 'units'"),
    ({"kind": "units", "year": "soon"}, "year: Input should be a valid integer"),
    ({"kind": "units", "year": "9" * 5000}, "year: "),
    ({"kind": "units", "institution": "a|b:c\x1b[2J"}, "the institution is 'a|b:c\\x1b[2J'"),
    ({"kind": "units", "name": "a\x1b[2J"}, "the file name is 'a\\x1b[2J'"),
    ({"kind": "units", "by": "x" * 201}, "200 characters"),
    ({"kind": "units", "type": "\x1b", "name": "a.csv"}, "the type is '\\x1b'"),
    ({"kind": "data", "decimal": "dot"}, "decimal: Input should be 'point' or 'comma'"),
    ({"kind": "units", "instituion": "other"}, "instituion: no parameter of this call"),
    ({"kind": "units", "year": ["2024", "2025"]}, "year: given more than once"),
    ({"kind": "data", "type": "zeppelin", "year": "2025"}, "no data entry type 'zeppelin'"),
    ({"kind": "units", "institution": b"Z\xfcrich"}, "not in UTF-8"),
]


def test_upload__wrong_parameter__names_it_with_a_remedy(api: Api) -> None:
    for given, message in WRONG:
        answer = api.upload(TRAIN, **given)
        assert answer.status_code == 422
        assert message in answer.json()["detail"]
        assert answer.json()["remedy"]
    assert api.upload(UNITS, kind="units", year="1066").status_code == 422


def test_call__any_error__is_a_problem_with_a_remedy(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.api.work._story", lambda *_: 1 / 0)
    # A redirect would lose an upload in a client that does not follow it.
    not_redirected = api.session.post(f"{api.address}/carbon/uploads/", timeout=30, allow_redirects=False)
    wrong_method = api.get("/sync/dispatch")
    found = [(not_redirected, 404), (api.get("/nowhere"), 404), (wrong_method, 405)]
    found.append((api.get("/sync/jobs/1"), 500))
    for answer, status in found:
        assert answer.status_code == status, answer.url
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json().keys() == {"type", "title", "status", "detail", "code", "remedy"}
        assert answer.json()["status"] == status
    assert wrong_method.headers["allow"] == "POST"
    assert "division" not in found[-1][0].text


CALLERS = [
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Host": "evil.example:3001", "Origin": "http://evil.example:3001"}, 403),
    ({"Host": "localhost.evil.example"}, 403),
    ({"Host": "[broken"}, 403),
    ({"Host": "localhost:3001"}, 404),
    ({"Host": "[::1]:3001", "Origin": "http://[::1]:3001"}, 404),
    ({}, 404),
]


def test_call__no_token_set__refuses_pages_of_browsers(settings: Settings, ledger: Ledger) -> None:
    assert ledger.get(1) is None
    with serving(make_settings(settings, api_token="")) as api:
        for headers, status in CALLERS:
            answer = requests.post(f"{api.address}/sync/jobs/1/recover", headers=headers, timeout=30)
            assert answer.status_code == status, headers
            assert answer.json()["code"] == ("foreign_page" if status == 403 else "unknown_work")


def test_call__token_set__is_needed_and_enough(api: Api, ledger: Ledger) -> None:
    job = f"/sync/jobs/{a_job(ledger)}"
    for given in ("", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer{TOKEN}", "Bearer ", "Bearer ä"):
        for method, path in (("GET", job), ("POST", f"{job}/recover"), ("POST", "/carbon/uploads")):
            answer = requests.request(
                method, api.address + path, headers={"Authorization": given.encode("latin-1")}, timeout=30
            )
            assert answer.status_code == 401
            assert TOKEN not in answer.text
    api.session.headers["Host"] = "carbon.example"
    for scheme in ("Bearer", "bearer", "BEARER"):
        api.session.headers["Authorization"] = f"{scheme} {TOKEN}"
        assert api.get(job).status_code == 200


def test_head__of_what_can_be_read__is_get_without_a_body(api: Api, ledger: Ledger) -> None:
    for path in ("/healthz", f"/sync/jobs/{a_job(ledger)}", "/sync/jobs/77", "/carbon/uploads"):
        read, head = api.get(path), api.session.head(api.address + path, timeout=30)
        assert (head.status_code, head.content) == (read.status_code, b"")
        assert head.headers["Content-Length"] == read.headers["Content-Length"]
    for path in ("/sync/units", "/sync/jobs/1/stream"):
        assert api.session.head(api.address + path, timeout=30).status_code == 405


def test_serve__public_address_without_token__is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="could upload") as caught:
        serve(make_settings(home=tmp_path, source="sandbox", api_host="0.0.0.0"))
    assert "PERENNIAL_API_TOKEN" in caught.value.remedy


def test_listening__port_in_use__names_the_setting() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InvalidInput, match="cannot listen on 127") as caught,
    ):
        listening("127.0.0.1", taken.getsockname()[1])
    assert "PERENNIAL_API_PORT" in caught.value.remedy


def test_upload__client_disconnects__logs_no_stack_trace(
    api: Api, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    host, port = api.address.removeprefix("http://").split(":")
    head = f"POST /carbon/uploads?kind=units&year=2025 HTTP/1.1\r\nHost: {host}\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as caller:
        caller.sendall(f"{head}Authorization: Bearer {TOKEN}\r\nContent-Length: 1000\r\n\r\nunit_id".encode())
    assert api.upload(UNITS, kind="units", year="2025").status_code == 202
    assert not [record for record in caplog.records if record.exc_info]
    assert len(open_carbon(settings).store.uploads.find()) == 1
