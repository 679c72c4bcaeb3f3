"""References over HTTP: a sync and its counts, the list of hand-offs with its filters, and refusals."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.api import references as routes
from orchestration.api.references import EXAMPLE_HANDOFF, EXAMPLE_SYNC, HandoffRow, Synced
from orchestration.domains.references import open_references
from orchestration.settings import Settings
from resources.database.migrate import bring_branch_back, take_branch_away
from resources.ledger.client import Ledger
from services.partitions import Attempt
from services.reconcile import reconcile
from services.references.reconcile import ReferencesReconciler
from services.references.scrape import scrape_sources
from services.references.sync import sync
from tests.integration.orchestration.api.conftest import TOKEN, Api
from tests.settings import make_settings

COUNTS = ("handoff_queued_count", "handoff_completed_count", "handoff_failed_count", "handoff_skipped_count")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "references").mkdir()
    return tmp_path / "references"


@pytest.fixture
def settings(tmp_path: Path, folder: Path) -> Settings:
    sources = tmp_path / "sources.yaml"
    sources.write_text(
        f"sources:\n- {{name: shelf, kind: folder, url: {folder}}}\n"
        "- {name: down, kind: paged, url: 'http://127.0.0.1:9/references'}\n"
    )
    return make_settings(
        home=tmp_path / "home", source="sandbox", api_token=TOKEN, references_sources=str(sources)
    )


def put(folder: Path, **titles: str) -> None:
    """Put a file with these references into the folder, complete at once."""
    rows = [{"id": name, "title": title} for name, title in titles.items()]
    part = folder / ".part"
    part.write_text(json.dumps(rows))
    os.utime(part, (0, 1_700_000_000 + len(part.read_text())))  # written long ago, and not at one moment
    part.rename(folder / "references.json")


def test_sync__twice__says_what_became_of_each_reference(api: Api, folder: Path):
    put(folder, a="one", b="two")
    first = api.post("/scraping/shelf/sync")
    assert first.status_code == 202, first.text
    assert [first.json()[name] for name in COUNTS] == [0, 2, 0, 0]
    put(folder, a="one", b="two", c="three")
    again = api.post("/scraping/shelf/sync", full="true").json()
    assert [again[name] for name in COUNTS] == [0, 1, 0, 2]
    assert (again["stored"], again["unchanged"]) == (1, 2)
    pipeline = api.get(f"/pipelines/{again['pipeline_id']}").json()
    assert (pipeline["view"]["source"], pipeline["domains"]) == ("shelf", ["references"])
    assert pipeline["work"]["references.ingest"] == {"queued": 1}


def test_sync__nothing_changed__is_a_pipeline_that_ended(api: Api, folder: Path):
    put(folder, a="one")
    api.post("/scraping/shelf/sync")
    again = api.post("/scraping/shelf/sync").json()
    assert api.get(f"/pipelines/{again['pipeline_id']}").json()["status"] == "SUCCESS"


def test_sync__not_waited_for__requests_one_scrape_for_the_next_run(
    api: Api, folder: Path, settings: Settings
):
    put(folder, a="one")
    first = api.post("/scraping/shelf/sync", wait="false")
    assert first.status_code == 202, first.text
    assert first.headers["location"] == f"/pipelines/{first.json()['pipeline_id']}"
    assert api.post("/scraping/shelf/sync", wait="false").json() == first.json()
    assert api.post("/scraping/nowhere/sync", wait="false").status_code == 404
    references = open_references(settings, write=True)
    starts = reconcile(ReferencesReconciler(references)).starts
    [start] = [one for one in starts if one.partitions == ("shelf",)]
    scrape_sources(references, ["shelf"], Attempt("run-1", dispatch_id=start.dispatch_id), lambda _: None)
    references.ledger.close()
    assert api.get(f"/work/{first.json()['job_id']}").json()["status"] == "completed"
    again = api.post("/scraping/shelf/sync", wait="false").json()
    assert again["job_id"] != first.json()["job_id"]


def test_sync__as_many_go_on_as_may__is_refused_with_retry_after(
    api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    put(folder, a="one")
    goes_on, go_on = threading.Semaphore(0), threading.Event()

    def slow(*arguments, **how):  # type: ignore[no-untyped-def]
        goes_on.release()
        assert go_on.wait(60)
        return sync(*arguments, **how)

    monkeypatch.setattr(routes, "sync", slow)
    with ThreadPoolExecutor(routes.AT_ONCE) as pool:
        held = [pool.submit(api.post, "/scraping/shelf/sync") for _ in range(routes.AT_ONCE)]
        for _ in held:
            assert goes_on.acquire(timeout=60)
        refused = api.post("/scraping/shelf/sync")
        go_on.set()
        assert {one.result().status_code for one in held} == {202}
    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_syncs")
    assert refused.headers["retry-after"] == "10"
    assert api.post("/scraping/shelf/sync").status_code == 202


def test_handoffs__filtered__are_pages_of_stable_order(api: Api, folder: Path):
    put(folder, a="one", b="two", c="three")
    first = api.post("/scraping/shelf/sync").json()["scrape_run_id"]
    put(folder, b="changed")
    second = api.post("/scraping/shelf/sync").json()["scrape_run_id"]

    def found(query: str = "") -> tuple[int, list[str]]:
        answer = api.get(f"/scraping/shelf/handoffs?{query}")
        assert answer.status_code == 200, answer.text
        page = answer.json()
        return page["total"], [row["reference_id"].removeprefix("shelf:") for row in page["items"]]

    assert found() == (4, ["a", "b", "c", "b"])
    assert found("limit=2") == (4, ["a", "b"])
    assert found("limit=2&offset=3") == (4, ["b"])
    assert found(f"scrape_run_id={second}") == (1, ["b"])
    assert found(f"scrape_run_id={first}&status=completed") == (3, ["a", "b", "c"])
    assert found("status=failed") == (0, [])


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=done", "status"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("offset=-1", "offset"),
        (f"offset={2**63}", "offset"),
        ("scrape_run_id=x", "scrape_run_id"),
        ("stauts=failed", "stauts"),
        ("limit=1&limit=2", "limit"),
    ],
)
def test_handoffs__wrong_query__is_named(api: Api, query: str, field: str):
    answer = api.get(f"/scraping/shelf/handoffs?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("source", ["%00", "a%0A", "x" * 201])
def test_routes__source_that_no_text_can_be__is_422(api: Api, source: str):
    for answer in (api.get(f"/scraping/{source}/handoffs"), api.post(f"/scraping/{source}/sync")):
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "source")


@pytest.mark.parametrize("source", ["..%2F..%2Fetc", "'%20OR%201=1--", "%F0%9F%98%80", "a|b"])
def test_routes__hostile_source__is_404(api: Api, ledger: Ledger, source: str):
    for answer in (api.get(f"/scraping/{source}/handoffs"), api.post(f"/scraping/{source}/sync")):
        assert answer.status_code == 404, answer.text


def test_sync__unknown_source_or_one_that_is_down__is_a_problem(api: Api, folder: Path):
    answer = api.post("/scraping/atlantis/sync")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_source")
    answer = api.get("/scraping/atlantis/handoffs")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_source")
    answer = api.post("/scraping/down/sync")
    assert (answer.status_code, answer.json()["code"]) == (503, "scrape_down")
    [pipeline] = api.get("/pipelines?domain=references").json()["pipelines"]
    assert (pipeline["status"], pipeline["view"]["scrape"]) == ("FAILED", "failed")


def test_handoffs__their_tables_taken_away__is_503_with_the_remedy(
    settings: Settings, ledger: Ledger, api: Api, folder: Path
):
    put(folder, a="one")
    take_branch_away(ledger.engine, "handoffs")
    answer = api.get("/scraping/shelf/handoffs")
    assert (answer.status_code, answer.json()["code"]) == (503, "handoff_unavailable")
    assert "perennial migrate --up handoffs" in answer.json()["remedy"]
    synced = api.post("/scraping/shelf/sync")
    assert (synced.status_code, synced.json()["handoff_available"], synced.json()["stored"]) == (
        202,
        False,
        1,
    )
    bring_branch_back(ledger.engine, "handoffs")
    assert api.get("/scraping/shelf/handoffs").json() == {"total": 0, "items": []}


def test_models__have_examples_that_fit() -> None:
    assert Synced.model_validate(EXAMPLE_SYNC).source == "atlas"
    assert HandoffRow.model_validate(EXAMPLE_HANDOFF).id == 7
