"""The story of one reference: what happened, in order, with the reason of each step, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import InvalidInput, TransientResourceError
from resources.database.migrate import take_branch_away
from services.references.explain import Story, explain
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.integration.services.references.fake_source import FakeScraper, FakeTarget


class Down(TransientResourceError):
    reason_code = "down"


def codes(story: Story, what: str) -> list[str]:
    return [step.reason_code for step in story.steps if step.what == what]


def test_explain__scraped_and_handed_over__tells_each_step_in_order(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="one", ab="another")
    outcome = sync(service, "atlas", by="curator")
    story = explain(service, "atlas:a")
    assert story.reference is not None
    assert (story.source, story.reference["title"]) == ("atlas", "title of a")
    assert "payload" not in story.reference
    [handoff] = story.handoffs
    assert (handoff.status, handoff.reason_code) == ("completed", "ingestion_job_queued")
    assert [step.at for step in story.steps] == sorted(step.at for step in story.steps)
    first = story.steps[0]
    assert (first.what, first.event, first.scrape_run_id) == ("scrape", "met", outcome.scrape_run_id)
    assert "curator" in first.text
    assert codes(story, "hand-off")[0] == "queued_from_scrape"
    assert codes(story, "hand-off")[-1] == "ingestion_job_queued"
    assert codes(story, "job") == ["ingestion_job_queued"]
    assert story.notes == ("it has no document yet",)


def test_explain__transient_error_that_healed__shows_each_attempt_and_its_error(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="one", b="two")
    service.target = FakeTarget(fails={"atlas:a": [Down("ingestion is away"), Down("still away")]})
    sync(service, "atlas", by="test")
    story = explain(service, "atlas:a")
    tried = [step for step in story.steps if step.what == "hand-off" and step.error]
    assert [step.reason_code for step in tried] == ["transient_error", "transient_error"]
    assert "ingestion is away" in (tried[0].error or "")
    [handoff] = story.handoffs
    assert (handoff.status, handoff.attempts) == ("completed", 3)


def test_explain__changed_content__has_a_hand_off_for_each(service: ReferencesService, scraper: FakeScraper):
    scraper.put(a="one")
    sync(service, "atlas", by="test")
    scraper.put(a="two")
    sync(service, "atlas", by="test")
    sync(service, "atlas", by="test", full=True)
    story = explain(service, "atlas:a")
    assert story.reference is not None
    old, new = story.handoffs
    assert new.payload_hash == story.reference["payload_hash"] != old.payload_hash
    met = [(s.event, s.payload_hash) for s in story.steps if s.what == "scrape"]
    assert met == [("met", old.payload_hash), ("met", new.payload_hash), ("met_again", new.payload_hash)]


def test_explain__runs_that_retention_deleted__still_begins_with_a_scrape(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="one")
    number = sync(service, "atlas", by="test").scrape_run_id
    sync(service, "atlas", by="test", full=True)
    assert service.store.delete_scrape_runs(service.clock() + timedelta(days=1)) == 1
    first = explain(service, "atlas:a").steps[0]
    assert (first.what, first.event, first.scrape_run_id) == ("scrape", "met", number)


@pytest.mark.parametrize("by_hand_off", [True, False])
def test_explain__without_the_history_of_hand_offs__tells_the_rest(
    service: ReferencesService, scraper: FakeScraper, by_hand_off: bool
):
    scraper.put(a="one")
    if by_hand_off:
        sync(service, "atlas", by="test")
    take_branch_away(service.ledger.engine, "handoffs")
    if not by_hand_off:
        sync(service, "atlas", by="test")
    story = explain(service, "atlas:a")
    assert story.handoffs == ()
    assert "handoffs" in story.notes[0]
    assert codes(story, "job") == (["ingestion_job_queued"] if by_hand_off else [])
    assert story.steps[0].what == "scrape"


def test_explain__as_json__is_plain(service: ReferencesService, scraper: FakeScraper):
    scraper.put(a="one")
    sync(service, "atlas", by="test")
    shown = explain(service, "atlas:a").as_json()
    assert shown["reference_id"] == "atlas:a"
    assert {"at", "what", "event", "reason_code", "text"} <= shown["steps"][0].keys()


@pytest.mark.parametrize("name", ["atlas:b", "other:a", "atlas", "", "atlas:' OR 1=1 --"])
def test_explain__unknown_reference__is_refused(service: ReferencesService, scraper: FakeScraper, name: str):
    scraper.put(a="one")
    sync(service, "atlas", by="test")
    with pytest.raises(InvalidInput) as error:
        explain(service, name)
    assert error.value.reason_code == "unknown_reference"
