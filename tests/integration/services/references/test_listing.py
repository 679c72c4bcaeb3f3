"""Hand-offs of a source, filtered and in pages, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from domain.shared.error import InvalidInput, TransientResourceError
from services.references.listing import HandoffPage, list_handoffs
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.integration.services.references.fake_source import FakeScraper, FakeTarget


class Down(TransientResourceError):
    reason_code = "down"


def names(page: HandoffPage) -> list[str]:
    return [item.handoff.reference_id for item in page.items]


def test_list_handoffs__pages__are_stable_and_have_the_total(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="one", b="two", c="three", d="four", e="five")
    sync(service, "atlas", by="test")
    pages = [list_handoffs(service, "atlas", limit=2, offset=at) for at in (0, 2, 4, 6)]
    assert [page.total for page in pages] == [5, 5, 5, 5]
    assert [name for page in pages for name in names(page)] == [f"atlas:{name}" for name in "abcde"]
    assert pages == [list_handoffs(service, "atlas", limit=2, offset=at) for at in (0, 2, 4, 6)]


def test_list_handoffs__filters__keep_what_they_name(service: ReferencesService, scraper: FakeScraper):
    scraper.put(a="one", b="two")
    service.target = FakeTarget(fails={"atlas:b": [Down("x"), Down("x"), Down("x")]})
    first = sync(service, "atlas", by="test")
    scraper.put(a="another")
    second = sync(service, "atlas", by="test", full=True)
    failed = list_handoffs(service, "atlas", status="failed")
    assert names(list_handoffs(service, "atlas", scrape_run_id=first.scrape_run_id)) == ["atlas:a", "atlas:b"]
    assert len(names(list_handoffs(service, "atlas", scrape_run_id=second.scrape_run_id))) == 2
    assert list_handoffs(service, "atlas", scrape_run_id="none").total == 0
    assert list_handoffs(service, "atlas", status="completed", scrape_run_id=first.scrape_run_id).total >= 1
    assert all(item.handoff.status == "failed" for item in failed.items)


def test_list_handoffs__item__names_every_scrape_that_met_it(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="one")
    runs = [sync(service, "atlas", by="test", full=True).scrape_run_id for _ in range(3)]
    [item] = list_handoffs(service, "atlas").items
    assert list(item.scrape_run_ids) == sorted(runs)
    shown = item.as_json()
    assert (shown["status"], shown["reason_code"], shown["attempts"]) == (
        "completed",
        "ingestion_job_queued",
        1,
    )


@pytest.mark.parametrize(
    "wrong",
    [{"status": "done"}, {"limit": 0}, {"limit": 1_001}, {"offset": -1}, {"offset": 2**63}],
)
def test_list_handoffs__wrong_filter__is_refused_by_its_name(
    service: ReferencesService, wrong: dict[str, Any]
):
    with pytest.raises(InvalidInput, match=next(iter(wrong))) as error:
        list_handoffs(service, "atlas", **wrong)
    assert error.value.reason_code == "invalid_filter"
    assert error.value.remedy


def test_list_handoffs__unknown_source__is_refused(service: ReferencesService):
    with pytest.raises(InvalidInput) as error:
        list_handoffs(service, "atlsa")
    assert error.value.reason_code == "unknown_source"


def test_list_handoffs__source_never_scraped__is_empty(service: ReferencesService):
    assert list_handoffs(service, "atlas") == HandoffPage(0, ())


def test_list_handoffs__source_taken_out_of_the_file__keeps_its_history(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="one")
    sync(service, "atlas", by="test")
    service.scrapers = {}
    assert list_handoffs(service, "atlas").total == 1
    assert list_handoffs(service, "atlas", status="failed").total == 0
