"""Scrape runs as pipelines, beside those of other domains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from orchestration.pipelines import PipelineReader, PipelineState
from resources.ledger.pipelines import new_pipeline_id
from tests.integration.services.references.references_app import ReferencesApp


@pytest.fixture
def reader(app: ReferencesApp) -> Iterator[PipelineReader]:
    assert app.service.store.states() == {}
    with closing(PipelineReader(app.settings)) as reader:
        yield reader


def state(reader: PipelineReader, name: str) -> PipelineState:
    return reader.states([name])[name]


def test_states__scrape__ends_with_the_jobs_that_followed(app: ReferencesApp, reader: PipelineReader) -> None:
    app.shelves["east"].holds({"a": "1", "b": "2"})
    name = app.sync("east").scrape_run_id
    found = state(reader, name)
    assert (found.status, found.ended, found.domains) == ("RUNNING", False, ("references",))
    assert found.view is not None
    assert found.view["source"] == "east"
    app.heal()
    assert state(reader, name).status == "SUCCESS"
    assert name in [one.pipeline_id for one in reader.find(domain="references").pipelines]


def test_states__scrape_found_nothing__is_done(app: ReferencesApp, reader: PipelineReader) -> None:
    name = app.sync("east").scrape_run_id
    assert (state(reader, name).status, state(reader, name).work) == ("SUCCESS", {})


def test_states__scrape_runs_or_failed__says_so(app: ReferencesApp, reader: PipelineReader) -> None:
    running, failed = new_pipeline_id(), new_pipeline_id()
    app.service.store.begin(running, "east", "test")
    app.service.store.begin(failed, "west", "test")
    app.service.store.fail(failed, {}, "scrape_incomplete", "half an answer")
    assert (state(reader, running).status, state(reader, failed).status) == ("RUNNING", "FAILED")
    assert state(reader, failed).view["reason"] == "half an answer"  # type: ignore[index]
    assert [one.pipeline_id for one in reader.find().pipelines] == sorted([running, failed], reverse=True)
