"""The scrapers against the made-up sources over a real socket: whole, or an error; free if unchanged."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import PerennialError, PermanentRunnerError, TransientResourceError
from resources.scraping.reference import NOTHING_READ, ScrapedReference
from resources.scraping.source import SourceScraper
from sandbox.server import SandboxServer
from tests.integration.resources.scraping.conftest import NOW, OF_ALL, Atlas

ATLAS_COUNT = 195  # one every 6 hours since 2026-10-01


def read(scraper: SourceScraper) -> list[ScrapedReference]:
    return list(scraper.fetch(NOTHING_READ, full=False))


def failure(scraper: SourceScraper) -> PerennialError:
    with pytest.raises(PerennialError) as error:
        read(scraper)
    return error.value


def test_fetch__atlas_by_pages__is_whole_and_the_same_each_time(atlas: Atlas):
    found = read(atlas())
    assert len({one.id for one in found}) == len(found) == ATLAS_COUNT
    assert found == read(atlas())
    newest = found[0]
    assert newest.id == "atlas-00195"
    assert newest.url == "https://atlas.example.org/references/195"
    assert newest.published_at == NOW
    assert newest.payload["abstract"].startswith("<p>")


def test_fetch__atlas_by_cursor__is_the_same(atlas: Atlas, sandbox: SandboxServer):
    by_cursor = atlas(style="cursor")
    assert [one.id for one in read(by_cursor)] == [one.id for one in read(atlas())]


def test_fetch__unchanged_source__is_free(atlas: Atlas, herald: SourceScraper, sandbox: SandboxServer):
    for scraper in (atlas(), herald):
        first = scraper.fetch(NOTHING_READ, full=False)
        assert list(first)
        sandbox.calls.clear()
        again = scraper.fetch(first.checkpoint(), full=False)
        assert (again.unchanged, list(again)) == (True, [])
        assert again.checkpoint() == first.checkpoint()
        assert [call.status for call in sandbox.calls.recent(scraper.source)] == [304]


def test_fetch__unchanged_source_in_full__is_read_whole(atlas: Atlas):
    first = atlas().fetch(NOTHING_READ, full=False)
    list(first)
    assert len(list(atlas().fetch(first.checkpoint(), full=True))) == ATLAS_COUNT


def test_fetch__checkpoint_of_other_settings__counts_for_nothing(atlas: Atlas):
    first = atlas().fetch(NOTHING_READ, full=False)
    list(first)
    other = atlas(**OF_ALL, per_page=7)
    assert len(list(other.fetch(first.checkpoint(), full=False))) == ATLAS_COUNT


def test_fetch__etag_of_the_first_page_only__is_not_kept(atlas: Atlas):
    scrape = atlas(total="total").fetch(NOTHING_READ, full=False)
    list(scrape)
    assert scrape.checkpoint().etag == ""


def test_fetch__since_the_newest_change__gives_only_what_changed(atlas: Atlas, sandbox: SandboxServer):
    scraper = atlas(total="total", changed_since="updated_since", overlap_hours=0)
    first = scraper.fetch(NOTHING_READ, full=False)
    list(first)
    assert list(scraper.fetch(first.checkpoint(), full=False)) == []
    sandbox.clock.stop_at(NOW + timedelta(hours=6))
    assert [one.id for one in scraper.fetch(first.checkpoint(), full=False)] == ["atlas-00196"]


def test_fetch__since_the_newest_change__asks_again_for_the_hours_before(atlas: Atlas):
    """One comes every 6 hours: what shifted from page to page while they were read is met again."""
    scraper = atlas(total="total", changed_since="updated_since")
    first = scraper.fetch(NOTHING_READ, full=False)
    list(first)
    again = scraper.fetch(first.checkpoint(), full=False)
    assert {"atlas-00195", "atlas-00194", "atlas-00193"} <= {one.id for one in again}
    assert again.checkpoint() == first.checkpoint()


def test_fetch__herald__has_the_newest_entries_as_they_came(herald: SourceScraper):
    found = read(herald)
    assert len(found) == 40
    assert found[0].id == "herald-00098"
    assert found[0].published_at == NOW
    assert found[0].payload["summary"].startswith("<p>On <b>")
    revised = next(one for one in found if one.id == "herald-00090")
    assert revised.title.startswith("<i>")


def test_fetch__grown_source__has_the_new_ones(atlas: Atlas, sandbox: SandboxServer):
    first = atlas().fetch(NOTHING_READ, full=False)
    list(first)
    sandbox.clock.stop_at(NOW + timedelta(days=1))
    grown = atlas().fetch(first.checkpoint(), full=False)
    assert not grown.unchanged
    assert len(list(grown)) == ATLAS_COUNT + 4


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("http_503", "scrape_down"),
        ("http_500", "scrape_down"),
        ("reset", "scrape_down"),
        ("rate_limit", "scrape_rate_limit"),
        ("truncate", "scrape_bad_answer"),
    ],
)
def test_fetch__fault_that_passes__is_transient(
    atlas: Atlas, herald: SourceScraper, sandbox: SandboxServer, kind: str, code: str
):
    for scraper in (atlas(), herald):
        sandbox.faults.set(scraper.source, kind, times=1)
        error = failure(scraper)
        assert isinstance(error, TransientResourceError)
        assert error.reason_code == code
        assert read(scraper)


def test_fetch__rate_limit__names_the_wait(atlas: Atlas, sandbox: SandboxServer):
    sandbox.faults.set("atlas", "rate_limit")
    error = failure(atlas())
    assert isinstance(error, TransientResourceError)
    assert (error.retry_after, error.retry_in_run) == (timedelta(seconds=60), False)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("http_401", "scrape_token"),
        ("http_403", "scrape_token"),
        ("http_404", "scrape_wrong_address"),
        ("html", "scrape_wrong_address"),
    ],
)
def test_fetch__fault_that_stays__is_permanent_with_a_remedy(
    atlas: Atlas, herald: SourceScraper, sandbox: SandboxServer, kind: str, code: str
):
    for scraper in (atlas(), herald):
        sandbox.faults.set(scraper.source, kind)
        error = failure(scraper)
        assert isinstance(error, PermanentRunnerError)
        assert error.reason_code == code
        assert scraper.source in error.remedy


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("half_page", "scrape_incomplete"),
        ("wrong_total", "scrape_incomplete"),
        ("duplicate_ids", "scrape_doubled_ids"),
    ],
)
def test_fetch__half_or_doubled_content__is_an_error_without_a_checkpoint(
    atlas: Atlas, sandbox: SandboxServer, kind: str, code: str
):
    sandbox.faults.set("atlas", kind)
    scrape = atlas().fetch(NOTHING_READ, full=False)
    with pytest.raises(TransientResourceError) as error:
        list(scrape)
    assert error.value.reason_code == code
    with pytest.raises(RuntimeError):
        scrape.checkpoint()


@pytest.mark.parametrize("kind", ["malformed", "xml_bomb"])
def test_fetch__feed_that_is_no_good_xml__is_an_error(
    herald: SourceScraper, sandbox: SandboxServer, kind: str
):
    sandbox.faults.set("herald", kind)
    assert failure(herald).reason_code == "scrape_bad_answer"


def test_fetch__content_only_reformatted__has_another_text(atlas: Atlas, sandbox: SandboxServer):
    before = {one.id: one.payload for one in read(atlas())}
    sandbox.faults.set("atlas", "reformatted")
    after = read(atlas())
    assert {one.id for one in after} == before.keys()
    assert any(list(one.payload) != list(before[one.id]) for one in after)


def test_fetch__changed_content__is_no_longer_unchanged(atlas: Atlas, sandbox: SandboxServer):
    first = atlas().fetch(NOTHING_READ, full=False)
    before = {one.id: one.title for one in first}
    sandbox.faults.set("atlas", "changed")
    changed = [one for one in atlas().fetch(first.checkpoint(), full=False) if one.title != before[one.id]]
    assert len(changed) == 65
