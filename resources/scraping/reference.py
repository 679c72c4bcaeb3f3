"""What a scraper gives: references, the checkpoint to go on from, and notes for a person.

A scraper reads one source. It never retries; what it met is raised as a type of `errors.py`. A plugin
is a function `module:function` that takes a `Source` and returns a `SourceReader`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from resources.scraping.checks import content_bytes, parse_id
from resources.scraping.errors import BadScrape, DoubledIds


@dataclass(frozen=True)
class ScrapedReference:
    """One reference as its source gave it."""

    id: str
    """At the source, without the source's name."""
    title: str
    url: str | None = None
    published_at: datetime | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    """All that the source said of it, as values of JSON."""


@dataclass(frozen=True)
class Checkpoint:
    """Where the next scrape of a source goes on; only its scraper reads what is in it."""

    etag: str = ""
    last_modified: str = ""
    cursor: str = ""
    """What a scraper knows besides: the newest change it saw, the stamps of the files it read."""


NOTHING_READ = Checkpoint()
Read = Generator[ScrapedReference, None, Checkpoint]
"""A reading of a source: yields its references and returns the checkpoint."""


_KINDS = {"title": str | None, "url": str | None, "published_at": datetime | None}


class Scrape:
    """One reading of a source, to be iterated once. `unchanged` sources have no references to read.

    The iterator ends only after the whole source was read: half a source is an error, never a short one.
    A reference that comes twice with the same content is given once and noted; one without a usable id is
    left out and noted. One that cannot be kept is an error that names it.
    """

    def __init__(
        self,
        read: Read | None,
        checkpoint: Checkpoint = NOTHING_READ,
        *,
        notes: list[str] | None = None,
        source: str = "",
    ) -> None:
        self.unchanged = read is None
        self.notes: list[str] = [] if notes is None else notes
        """What a curator should know of it, in sentences; complete once the iterator has ended."""
        self._read = read
        self._checkpoint = checkpoint if read is None else None
        self.mark = ""
        """Of the settings with which the source was read; a checkpoint carries it."""
        self._source = source

    def __iter__(self) -> Iterator[ScrapedReference]:
        if self._read is None:
            return
        repeated: list[str] = []
        left_out: list[str] = []
        with closing(self._read) as read:
            checkpoint = yield from self._without_repeats(self._usable(read, left_out), repeated)
        if repeated:
            self.notes.append(
                f"references that came more than once: {len(repeated):,} (first: {repeated[0]})"
            )
        if left_out:
            self.notes.append(f"left out, for want of a usable id: {len(left_out):,} (first: {left_out[0]})")
        self._checkpoint = checkpoint

    def _usable(self, read: Read, left_out: list[str]) -> Read:
        while True:
            try:
                reference = next(read)
            except StopIteration as end:
                checkpoint: Checkpoint = end.value
                return checkpoint
            try:
                name = parse_id(reference.id, "id")
            except ValueError as error:
                left_out.append(str(error))
            else:
                yield reference if name == reference.id else replace(reference, id=name)

    def _without_repeats(self, read: Read, repeated: list[str]) -> Read:
        # Hashes, not references: a million of them take some 150 MB.
        seen: dict[int, int] = {}
        while True:
            try:
                reference = next(read)
            except StopIteration as end:
                checkpoint: Checkpoint = end.value
                return checkpoint
            key, content = hash(reference.id), self._content(reference)
            if key not in seen:
                seen[key] = content
                yield reference
            elif seen[key] == content:
                repeated.append(reference.id)
            else:
                raise DoubledIds(
                    f"{self._source or 'the source'} has two references of one id: {reference.id}"
                )

    def _content(self, reference: ScrapedReference) -> int:
        shown = {"title": reference.title, "url": reference.url, "published_at": reference.published_at}
        try:
            for name, value in shown.items():
                if not isinstance(value, _KINDS[name]):
                    raise ValueError(f"has a {name} that is a {type(value).__name__}")
            return hash((*shown.values(), content_bytes(reference.payload)))
        except ValueError as error:
            raise BadScrape(
                f"the reference {reference.id} of {self._source or 'the source'} {error}"
            ) from None

    def checkpoint(self) -> Checkpoint:
        """Return where the next scrape goes on, once the iterator has ended."""
        if self._checkpoint is None:
            raise RuntimeError("a source that was not read to its end has no checkpoint")
        return replace(self._checkpoint, cursor=f"{self.mark} {self._checkpoint.cursor}".strip())


class Scraper(Protocol):
    """One source."""

    @property
    def source(self) -> str: ...

    def fingerprint(self) -> str:
        """Return a text that changes with everything a permanent refusal may have been about."""
        ...

    def fetch(self, since: Checkpoint, full: bool) -> Scrape:
        """Begin to read the source: what is new since the checkpoint, or all of it if `full`."""
        ...


class SourceReader(Protocol):
    """What a plugin writes: reads one source."""

    def fetch(self, since: Checkpoint) -> Scrape:
        """Begin to read what is new since a checkpoint of this reader; all of it since `NOTHING_READ`."""
        ...
