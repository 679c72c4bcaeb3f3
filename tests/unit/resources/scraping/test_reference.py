"""A scrape gives each reference once, and a checkpoint only after the whole source was read."""

from __future__ import annotations

import pytest

from resources.scraping.errors import DoubledIds
from resources.scraping.reference import Checkpoint, Read, Scrape, ScrapedReference

END = Checkpoint(etag='"2"')


def read(*references: ScrapedReference) -> Read:
    yield from references
    return END


def reference(name: str, title: str = "A title") -> ScrapedReference:
    return ScrapedReference(name, title, payload={"id": name, "title": title})


def test_checkpoint__source_read_to_its_end__is_what_the_scraper_returned():
    scrape = Scrape(read(reference("1"), reference("2")))
    assert [one.id for one in scrape] == ["1", "2"]
    assert (scrape.checkpoint(), scrape.unchanged, scrape.notes) == (END, False, [])


def test_checkpoint__source_read_by_half__is_refused():
    scrape = Scrape(read(reference("1"), reference("2")))
    next(iter(scrape))
    with pytest.raises(RuntimeError):
        scrape.checkpoint()


def test_iterate__reference_comes_twice__is_given_once_and_noted():
    scrape = Scrape(read(reference("1"), reference("2"), reference("1")))
    assert [one.id for one in scrape] == ["1", "2"]
    assert scrape.notes == ["references that came more than once: 1 (first: 1)"]


def test_iterate__one_id_with_two_contents__is_an_error():
    scrape = Scrape(read(reference("1"), reference("1", "Another title")), source="atlas")
    with pytest.raises(DoubledIds, match="atlas") as error:
        list(scrape)
    assert error.value.reason_code == "scrape_doubled_ids"


def test_iterate__unchanged_source__gives_nothing_and_keeps_the_checkpoint():
    scrape = Scrape(None, END)
    assert (list(scrape), scrape.unchanged, scrape.checkpoint()) == ([], True, END)
