"""A source of references under test: what it holds is set by the test, and so is how it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.references.handoffs import Content
from resources.scraping.reference import Checkpoint, Read, Scrape, ScrapedReference
from services.references.service import Outcomes


@dataclass
class FakeScraper:
    """Fulfils the protocol of scrapers. `etag` says that nothing changed when it is asked again."""

    source: str = "atlas"
    holds: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    etag: str = ""
    error: Exception | None = None
    """Raised after everything was given."""
    asked: list[tuple[Checkpoint, bool]] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    """Called before the first reference is given."""

    def put(self, **payloads: Any) -> None:
        """Make these the payloads of references, by id."""
        self.holds |= {name: {"text": payload} for name, payload in payloads.items()}

    def fill(self, number: int, text: str = "a") -> None:
        self.holds |= {f"r{n:06}": {"text": text} for n in range(number)}

    def fingerprint(self) -> str:
        return self.source

    def fetch(self, since: Checkpoint, full: bool) -> Scrape:
        self.asked.append((since, full))
        if self.etag and not full and since.etag == self.etag:
            return Scrape(None, since)
        return Scrape(self._read(dict(self.holds)), source=self.source)

    def _read(self, holds: Mapping[str, Mapping[str, Any]]) -> Read:
        self.meanwhile()
        for name, payload in holds.items():
            yield ScrapedReference(name, f"title of {name}", payload=payload)
        if self.error is not None:
            raise self.error
        return Checkpoint(etag=self.etag)


@dataclass
class FakeTarget:
    """Where contents are handed over to. `fails` by reference id: the errors of its next attempts."""

    fails: dict[str, list[Exception]] = field(default_factory=dict)
    got: list[Content] = field(default_factory=list)
    raises: list[Exception] = field(default_factory=list)

    def queue(self, contents: Sequence[Content]) -> Outcomes:
        if self.raises:
            raise self.raises.pop(0)
        found: dict[Content, str | Exception] = {}
        for content in contents:
            errors = self.fails.get(content.reference_id)
            found[content] = errors.pop(0) if errors else "ingestion_job_queued"
            if not isinstance(found[content], Exception):
                self.got.append(content)
        return found


@dataclass
class Incremental:
    """A source that gives only what it got since it was read last, unless it is read whole."""

    source: str = "atlas"
    holds: list[str] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def fingerprint(self) -> str:
        return self.source

    def fetch(self, since: Checkpoint, full: bool) -> Scrape:
        first = 0 if full else int(since.cursor or 0)
        return Scrape(self._read(first), source=self.source)

    def _read(self, first: int) -> Read:
        self.meanwhile()
        for name in self.holds[first:]:
            yield ScrapedReference(name, f"title of {name}", payload={"text": "1"})
        return Checkpoint(cursor=str(len(self.holds)))
