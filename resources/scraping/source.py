"""A source of references as its settings say, and which scraper reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from domain.shared.error import InvalidInput
from domain.shared.hashing import digest
from resources.scraping.reference import Scraper

KINDS = {
    "paged": "resources.scraping.paged:PagedScraper",
    "rss": "resources.scraping.rss:FeedScraper",
    "folder": "resources.scraping.folder:FolderScraper",
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


def make_scraper(source: Source) -> Scraper:
    """Return the scraper of a source."""
    module, _, name = KINDS.get(source.kind, source.kind).partition(":")
    try:
        make = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"source {source.name}: the scraper {source.kind} cannot be imported: {error}",
            reason_code="scrape_plugin",
            remedy=f"name {', '.join(KINDS)}, or a function of an installed package as module:function",
        ) from error
    scraper: Scraper = make(source)
    return scraper
