"""A scrape gives each reference once, and a checkpoint only after the whole source was read."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from resources.scraping.errors import BadScrape, DoubledIds
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


def test_iterate__ids_that_no_key_can_be__are_left_out_and_noted():
    odd: list[Any] = [None, True, "", "nul\x00", "長" * 700, ["a"]]
    scrape = Scrape(read(reference("1"), *(ScrapedReference(name, "") for name in odd), reference("2")))
    assert [one.id for one in scrape] == ["1", "2"]
    assert scrape.notes == ["left out, for want of a usable id: 6 (first: a reference has no id in id)"]
    assert scrape.checkpoint() == END


def test_iterate__id_that_is_a_number__becomes_text():
    number: Any = 7
    assert [one.id for one in Scrape(read(ScrapedReference(number, "Seven")))] == ["7"]


@pytest.mark.parametrize(
    "change",
    [
        {"payload": reduce(lambda inner, _: {"in": inner}, range(300), {})},
        {"payload": {"number": 2**64}},
        {"payload": {"half a pair": "\ud800"}},
        {"payload": {1: "a key that is no text"}},
        {"payload": ["no object"]},
        {"title": 7},
        {"published_at": "2026-11-17"},
    ],
)
def test_iterate__reference_that_cannot_be_kept__is_an_error_that_names_it(change: dict[str, Any]):
    odd = ScrapedReference(**{"id": "odd-1", "title": "Odd", **change})
    with pytest.raises(BadScrape, match="the reference odd-1 of atlas ") as error:
        list(Scrape(read(reference("1"), odd), source="atlas"))
    assert error.value.reason_code == "scrape_bad_answer"
