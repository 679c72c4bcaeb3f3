"""A source that tests write: a plugin that reads a JSON file, with its faults and its answer "unchanged"."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domain.references.documents import Document, Reference, clean
from domain.shared.error import InvalidInput
from resources.scraping.errors import ScrapeDown
from resources.scraping.reference import Checkpoint, Read, Scrape, ScrapedReference
from resources.scraping.source import Source

PATIENCE = 120
PUBLISHED = datetime(2026, 11, 1, tzinfo=UTC)


class Shelf:
    """What the plugin reads. `mark` is its ETag."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.holds({})

    def holds(self, texts: Mapping[str, str], *, fault: str = "", mark: str = "") -> None:
        """By id, the text of each reference."""
        self.path.write_text(json.dumps({"texts": dict(texts), "fault": fault, "mark": mark}))


def make(source: Source) -> ShelfReader:
    return ShelfReader(Path(source.url))


class ShelfReader:
    def __init__(self, path: Path) -> None:
        self._path = path

    def fetch(self, since: Checkpoint) -> Scrape:
        held: Any = json.loads(self._path.read_text())
        if held["fault"] == "down":
            raise ScrapeDown("the shelf does not answer")
        if held["mark"] and since.etag == held["mark"]:
            return Scrape(None, since)
        return Scrape(_read(held))


def _read(held: Any) -> Read:
    for number, (name, text) in enumerate(held["texts"].items()):
        published = PUBLISHED.replace(day=1 + number % 28)
        yield ScrapedReference(name, f"Title of {name}", f"https://shelf/{name}", published, {"text": text})
    return Checkpoint(etag=held["mark"])


def ingest(reference: Reference) -> Document:
    """An ingest function that fails as the text says."""
    text = str(reference.payload["text"])
    word, _, path = text.partition(":")
    if word in ("kill", "hang") and not Path(path).exists():
        Path(path).touch()
        if word == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait(PATIENCE)
    if "busy" in text:
        raise ScrapeDown("the parser is busy")
    if "wrong" in text:
        raise InvalidInput("no text to parse", reason_code="unreadable")
    if "crash" in text:
        raise ZeroDivisionError
    return clean(reference)


def numbered(numbers: Sequence[int], text: str = "text") -> dict[str, str]:
    return {f"r{number}": f"{text} {number}" for number in numbers}
