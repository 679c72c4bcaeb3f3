"""Scrapes JSON that comes in pages, numbered or one leading to the next.

One page is held at a time. A source that says how many references it has is read whole or not at all: fewer
are an error, as a page may have gone missing. `changed_since` asks for less: only what changed since some
hours before the newest change that was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from domain.shared.clock import Clock, machine_clock
from resources.http.client import MOST_PAGES, Call, HttpClient
from resources.scraping.address import client_of, conditions, split_address, validators
from resources.scraping.errors import ScrapeIncomplete
from resources.scraping.fields import lookup, parse_reference
from resources.scraping.options import MOST_BYTES, PagedOptions
from resources.scraping.overlap import earlier, is_ahead
from resources.scraping.reference import Checkpoint, Read, Scrape, ScrapedReference
from resources.scraping.source import Source


@dataclass(frozen=True)
class _Page:
    references: list[ScrapedReference]
    newest: str
    total: int | None
    following: Mapping[str, str] | None
    """The parameters of the next page, None after the last."""


class PagedReader:
    """A source of JSON in pages."""

    def __init__(self, source: Source, clock: Clock = machine_clock) -> None:
        self.source = source.name
        self._clock = clock
        self._of = source
        self._options = PagedOptions.model_validate(source.options)
        self._folder, self._call = split_address(source.url, self._options, MOST_BYTES)

    def fetch(self, since: Checkpoint) -> Scrape:
        call = self._first_call(since)
        http = client_of(self._of, self._folder, self._call.path, self._options)
        with closing(http):
            answer = http.receive_json(replace(call, headers=conditions(since)), self._page_of(call, 0))
        if answer is None:
            return Scrape(None, since)
        first, headers = answer
        notes: list[str] = []
        pages = self._pages(http, call, first)
        read = self._read(pages, validators(headers), since.cursor, notes)
        return Scrape(read, notes=notes, source=self.source)

    def _first_call(self, since: Checkpoint) -> Call:
        options, params = self._options, dict(self._call.params)
        if options.style == "page":
            params[options.page] = str(options.first_page)
        if options.size:
            params[options.size] = str(options.per_page)
        if options.changed_since and since.cursor:
            params[options.changed_since] = earlier(since.cursor, options.overlap_hours)
        return replace(self._call, params=params)

    def _read(self, pages: Iterator[_Page], validators: Checkpoint, newest: str, notes: list[str]) -> Read:
        totals: list[int] = []
        ids, count = set[int](), 0
        for page in pages:
            count += 1
            totals += [] if page.total is None else [page.total]
            newest = max(newest, page.newest)
            ids.update(hash(reference.id) for reference in page.references)
            yield from page.references
        self._check_total(len(ids), totals, notes)
        if self._options.changed_since:
            return Checkpoint(cursor=newest)
        return validators if count == 1 or self._options.etag_of_all else Checkpoint()

    def _pages(self, http: HttpClient, call: Call, page: _Page) -> Iterator[_Page]:
        met = 0
        with closing(http):
            for _ in range(MOST_PAGES):
                met += len(page.references)
                yield page
                if page.following is None:
                    return
                if page.following == call.params:
                    raise http.bad_body(call.path, "the next page is this one")
                call = replace(call, params=page.following)
                if (answer := http.receive_json(call, self._page_of(call, met))) is None:
                    raise http.bad_body(call.path, "HTTP 304 for a page without a condition")
                page, _ = answer
        raise http.bad_body(call.path, f"more than {MOST_PAGES:,} pages")

    def _page_of(self, call: Call, before: int) -> Callable[[Any], _Page]:
        return lambda answer: self._page(answer, call.params, before)

    def _page(self, answer: Any, params: Mapping[str, str], before: int) -> _Page:
        options = self._options
        items = answer if isinstance(answer, list) and not options.items else lookup(answer, options.items)
        if not isinstance(items, list):
            raise ValueError(f"{options.items or 'the answer'} is no list")
        total = lookup(answer, options.total) if options.total else None
        if total is not None and type(total) is not int:
            raise ValueError(f"{options.total} is no whole number")
        references = [parse_reference(item, options) for item in items]
        following = self._following(answer, params, len(items), before)
        return _Page(references, self._newest(items), total, following)

    def _newest(self, items: list[Any]) -> str:
        if not self._options.changed_since:
            return ""
        changes, now = [lookup(item, self._options.changed) for item in items], self._clock()
        return max((str(change) for change in changes if change and not is_ahead(change, now)), default="")

    def _following(
        self, answer: Any, params: Mapping[str, str], items: int, before: int
    ) -> Mapping[str, str] | None:
        options = self._options
        following = lookup(answer, options.next)
        if options.style == "cursor":
            return self._parameters(following, params)
        named = isinstance(answer, Mapping) and options.next.split(".")[0] in answer
        total = lookup(answer, options.total) if options.total else None
        if not items or (named and following is None) or (total is not None and before + items >= total):
            return None
        return {**params, options.page: str(int(params[options.page]) + 1)}

    def _parameters(self, following: Any, params: Mapping[str, str]) -> Mapping[str, str] | None:
        if following is None or following == "":
            return None
        if isinstance(following, bool) or not isinstance(following, str | int):
            raise ValueError(f"{self._options.next} is no text")
        text = str(following)
        parts = urlsplit(text)
        if not (parts.query and (parts.scheme in ("http", "https") or text[0] in "/?")):
            return {**params, self._options.cursor: text}
        # The token goes to the address of the source and to no other.
        if parts.netloc and parts.netloc != urlsplit(self._of.url).netloc:
            raise ValueError(f"{self._options.next} leads to another server, {parts.hostname}")
        return {**params, **dict(parse_qsl(parts.query, keep_blank_values=True))}

    def _check_total(self, found: int, totals: list[int], notes: list[str]) -> None:
        if totals and found < min(totals):
            raise ScrapeIncomplete(
                f"{self.source} gave {found:,} references of the {min(totals):,} that it said it has"
            )
        if totals and found > max(totals):
            notes.append(f"{self.source} gave {found:,} references and said it has {max(totals):,}")
