"""A source of references as its settings say, and which scraper reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from domain.shared.error import InvalidInput
from domain.shared.hashing import digest
from resources.scraping.reference import NOTHING_READ, Checkpoint, Scrape, SourceReader

KINDS = {
    "paged": "resources.scraping.paged:PagedReader",
    "rss": "resources.scraping.rss:FeedReader",
    "folder": "resources.scraping.folder:FolderReader",
}


@dataclass(frozen=True)
class Source:
    """What a scraper is made from."""

    name: str
    kind: str
    """One of `KINDS`, or the function of a plugin as `module:function`."""
    url: str
    """An address, or the folder of files."""
    token: str = field(default="", repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """Return a text that changes with everything a permanent refusal may have been about."""
        return digest([self.name, self.kind, self.url, self.token, dict(self.options)])


@dataclass(frozen=True)
class SourceScraper:
    """A `Scraper`. A checkpoint made with other settings of the source is none: it is read whole then."""

    source: str
    mark: str
    reader: SourceReader

    def fingerprint(self) -> str:
        return self.mark

    def fetch(self, since: Checkpoint, full: bool) -> Scrape:
        """Begin to read the source: what is new since the checkpoint, or all of it."""
        mark, _, cursor = since.cursor.partition(" ")
        resumed = mark == self.mark and not full
        scrape = self.reader.fetch(replace(since, cursor=cursor) if resumed else NOTHING_READ)
        scrape.mark = self.mark
        return scrape


def make_scraper(source: Source, mark: str = "") -> SourceScraper:
    """Return the scraper of a source; `mark` stands for its settings if its address is another each time."""
    module, _, name = KINDS.get(source.kind, source.kind).partition(":")
    try:
        make = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"source {source.name}: the scraper {source.kind} cannot be imported: {error}",
            reason_code="scrape_plugin",
            remedy=f"name {', '.join(KINDS)}, or a function of an installed package as module:function",
        ) from error
    try:
        reader = make(source)
        wrong = "" if callable(getattr(reader, "fetch", None)) else f"it made a {type(reader).__name__}"
    except TypeError as error:
        wrong = str(error)
    if wrong:
        raise InvalidInput(
            f"source {source.name}: the plugin {source.kind} makes no scraper: {wrong}",
            reason_code="scrape_plugin",
            remedy="name a function that takes one Source and returns an object with fetch(since)",
        )
    return SourceScraper(source.name, mark or source.fingerprint(), reader)
