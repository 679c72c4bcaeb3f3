"""The pipelines of all domains: what follows from their work, and what their domain says of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.carbon.jobs import AGGREGATION
from domain.market.plan import FILL
from domain.shared.work import WorkRequest
from orchestration.domains.carbon import open_carbon
from orchestration.pipelines import PipelineReader
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from resources.ledger.pipelines import new_pipeline_id
from services.carbon.upload import upload
from services.carbon.uploaded_file import File
from tests.settings import make_settings

UNITS = b"unit_id,name,parent_id\nUNI,University,\nPHY,Physics,UNI\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(home=tmp_path / "home", source="sandbox")


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    ledger = open_ledger(settings, write=True)
    yield ledger
    ledger.close()


@pytest.fixture
def reader(settings: Settings, ledger: Ledger) -> Iterator[PipelineReader]:
    reader = PipelineReader(settings)
    yield reader
    reader.close()


def enqueue(ledger: Ledger, key: str, kind: str = FILL) -> str:
    name = new_pipeline_id()
    ledger.enqueue([WorkRequest(kind, key, "f", pipelines=(name,))])
    return name


def upload_units(settings: Settings, content: bytes = UNITS, year: int = 2025) -> str:
    carbon = open_carbon(settings, write=True)
    receipt = upload(carbon, File("units", "units.csv", content, "ada", "main", "csv", year))
    carbon.ledger.close()
    return receipt.upload.pipeline_id


def test_states__work_of_the_ledger__is_counted_by_kind(reader: PipelineReader, ledger: Ledger) -> None:
    name = enqueue(ledger, "normalized_daily:2026-11-17")
    [state] = reader.states([name, new_pipeline_id()]).values()
    assert (state.status, state.domains, state.work) == ("NOT_STARTED", ("market",), {FILL: {"queued": 1}})
    with ledger.lease(FILL, ["normalized_daily:2026-11-17"], "run", heartbeat=False) as held:
        assert reader.states([name])[name].status == "RUNNING"
        held.complete("normalized_daily:2026-11-17")
    state = reader.states([name])[name]
    assert (state.status, state.ended, state.view) == ("SUCCESS", True, None)
    assert state.started_at is not None
    assert state.finished_at is not None
    assert state.created_at is not None


def test_states__upload__has_the_phases_that_carbon_gives(reader: PipelineReader, settings: Settings) -> None:
    name = upload_units(settings)
    state = reader.states([name])[name]
    assert state.domains == ("carbon",)
    assert state.view is not None
    assert (state.view["file"], state.view["status"]) == ("units.csv", state.status)


def test_states__refused_upload__has_failed_without_any_work(
    reader: PipelineReader, settings: Settings
) -> None:
    carbon = open_carbon(settings, write=True)
    with pytest.raises(Exception, match="unit_id"):
        upload(carbon, File("units", "bad.csv", b"unit_id,name\n,x\n", "ada", "main", "csv", 2025))
    [name] = carbon.store.uploads.pipelines()
    state = reader.states([name])[name]
    assert (state.status, state.ended, state.work) == ("FAILED", True, {})


def test_find__all_domains__newest_first_in_pages(
    reader: PipelineReader, settings: Settings, ledger: Ledger
) -> None:
    names = [enqueue(ledger, f"normalized_daily:2026-11-{day}") for day in (16, 17)]
    names += [upload_units(settings), enqueue(ledger, "carbon_reports:2025", AGGREGATION)]
    found, before = [], None
    while True:
        page = reader.find(limit=3, before=before)
        found += [one.pipeline_id for one in page.pipelines]
        if (before := page.more_before) is None:
            break
    assert found == sorted(names, reverse=True)
    assert {one.pipeline_id for one in reader.find(domain="market").pipelines} == set(names[:2])
    assert {one.pipeline_id for one in reader.find(domain="carbon").pipelines} == set(names[2:])


def test_find__status__looks_further_back_than_one_page(reader: PipelineReader, ledger: Ledger) -> None:
    done = enqueue(ledger, "normalized_daily:2026-11-17")
    with ledger.lease(FILL, ["normalized_daily:2026-11-17"], "run", heartbeat=False) as held:
        held.complete("normalized_daily:2026-11-17")
    ledger.enqueue([WorkRequest(FILL, f"day:{n}", "f", pipelines=(new_pipeline_id(),)) for n in range(150)])
    page = reader.find(status="SUCCESS", limit=5)
    assert ([one.pipeline_id for one in page.pipelines], page.more_before) == ([done], None)
    assert len(reader.find(status="NOT_STARTED", limit=120).pipelines) == 120
