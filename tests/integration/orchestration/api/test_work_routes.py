"""Work items over HTTP: list, show, retry, cancel."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.carbon.jobs import AGGREGATION
from domain.shared.work import STATUSES, WorkRequest
from orchestration.api.work import EXAMPLE, Status, WorkItem
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from tests.integration.orchestration.api.conftest import TOKEN, Api
from tests.settings import make_settings


@pytest.fixture
def settings(tmp_path: Path, ledger_url: str) -> Settings:
    """On SQLite and on a real Postgres."""
    return make_settings(home=tmp_path / "home", source="sandbox", api_token=TOKEN, database_url=ledger_url)


@pytest.fixture
def jobs(ledger: Ledger) -> list[int]:
    """Seven waiting reports, the oldest first."""
    wanted = [
        WorkRequest(AGGREGATION, f"carbon_reports:{year}", "f", reason_code="missing")
        for year in range(2020, 2027)
    ]
    return [row.id for row in ledger.enqueue(wanted).created]


def ids(api: Api, query: str) -> list[int]:
    answer = api.get(f"/work?{query}")
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def test_status__in_the_model__is_every_status_of_the_ledger() -> None:
    assert set(Status.__args__) == set(STATUSES)
    assert WorkItem.model_validate(EXAMPLE).key == "daily_orders:2026-11-17"


def test_work__page_by_page_while_rows_come__has_each_row_once(
    api: Api, ledger: Ledger, jobs: list[int]
) -> None:
    first = api.get("/work?limit=3").json()
    ledger.enqueue([WorkRequest(AGGREGATION, "carbon_reports:2030", "f")])
    second = api.get(f"/work?limit=3&cursor={first['next_cursor']}").json()
    last = api.get(f"/work?limit=3&cursor={second['next_cursor']}").json()
    found = [item["id"] for page in (first, second, last) for item in page["items"]]
    assert (found, last["next_cursor"]) == (jobs[::-1], None)


def test_work__filtered__has_what_matches(api: Api, ledger: Ledger, jobs: list[int]) -> None:
    ledger.cancel(jobs[0])
    assert ids(api, "status=cancelled") == [jobs[0]]
    assert len(ids(api, "status=cancelled&status=queued")) == len(jobs)
    assert ids(api, "key=carbon_reports:2026") == [jobs[-1]]
    assert ids(api, f"kind={AGGREGATION}&reason_code=missing&limit=1") == [jobs[-1]]
    assert ids(api, "kind=market.fill") == []
    assert ids(api, "key=carbon%25") == [], "a percent sign matches itself only"


def test_work__wrong_filter__is_named(api: Api, jobs: list[int]) -> None:
    for query, field in (
        ("status=done", "status.0"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=x", "cursor"),
        (f"cursor={2**63}", "cursor"),
        ("limit=1&limit=2", "limit"),
        ("stauts=failed", "stauts"),
    ):
        answer = api.get(f"/work?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
        assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_work__one__is_shown_with_its_history_under_both_paths(api: Api, jobs: list[int]) -> None:
    shown = api.get(f"/work/{jobs[0]}").json()
    assert (shown["id"], shown["events"][0]["event"], shown["pipeline_ids"]) == (jobs[0], "created", [])
    assert api.get(f"/sync/jobs/{jobs[0]}").json() == shown


def test_cancel_and_retry__are_what_the_command_does(api: Api, ledger: Ledger, jobs: list[int]) -> None:
    assert api.post(f"/work/{jobs[0]}/cancel").json()["status"] == "cancelled"
    assert api.post(f"/work/{jobs[0]}/cancel").status_code == 200
    answer = api.post(f"/work/{jobs[0]}/retry")
    assert answer.status_code == 202
    queued = answer.json()
    assert (queued["status"], queued["reason_code"], queued["parent_id"]) == ("queued", "retried", jobs[0])
    assert api.get(f"/work/{queued['job_id']}").json()["id"] == queued["job_id"] > jobs[-1]
    with ledger.lease(AGGREGATION, ["carbon_reports:2021"], "run", heartbeat=False) as lease:
        assert api.post(f"/work/{jobs[1]}/retry").json()["code"] == "already_running"
        lease.complete("carbon_reports:2021")
    finished = api.post(f"/work/{jobs[1]}/cancel")
    assert (finished.status_code, finished.json()["code"]) == (409, "already_finished")


def test_retry__of_work_of_a_pipeline__names_the_pipeline(api: Api, ledger: Ledger) -> None:
    [row] = ledger.enqueue([WorkRequest(AGGREGATION, "carbon_reports:2025", "f", pipelines=("P1",))]).created
    assert api.post(f"/work/{row.id}/retry").json()["pipeline_id"] == "P1"


def test_work__unknown__is_not_found(api: Api, ledger: Ledger) -> None:
    assert ledger.get(10**9) is None
    for method, path in (("GET", ""), ("POST", "/retry"), ("POST", "/cancel")):
        answer = api.session.request(method, f"{api.address}/work/{10**9}{path}", timeout=30)
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_work")
