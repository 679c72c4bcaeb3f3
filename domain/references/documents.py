"""What becomes of a reference: a document with a cleaned title and text.

`clean` is the function that ships. Another one is set as `module:function`; it takes a `Reference`, returns a
`Document`, and raises the types of `domain/shared/error.py` for what time or a person must heal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

from domain.shared.printable import printable

TEXTS = ("text", "content", "body", "description", "summary", "abstract")
"""Fields of a payload that may hold the text; the first that does counts."""
_TAG = re.compile(
    r"<(?:!--|/?(?:a|abbr|article|b|blockquote|br|code|div|em|figure|h[1-6]|hr|i|iframe|img|li|ol|p|pre|script|"
    r"section|small|span|strong|style|sub|sup|table|tbody|td|th|tr|u|ul)\b[^<>]*>)|&(?:#\d+|#x[0-9a-f]+|\w+);",
    re.IGNORECASE,
)
"""What says that a text is HTML: else `a < b` is one, too."""
_UNSEEN = {"script", "style", "iframe"}
_INLINE = {"a", "abbr", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "u"}


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference as it is stored."""

    id: str
    """With its source: `<source>:<id at the source>`."""
    source: str
    title: str | None
    url: str | None
    published_at: datetime | None
    payload: Mapping[str, Any]
    payload_hash: str
    scrape_run_id: str = ""
    """The scrape run that brought this content."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is made of a reference. Address and date are the reference's unless they are given."""

    title: str | None
    text: str | None
    url: str | None = None
    published_at: datetime | None = None


Ingest = Callable[[Reference], Document]


def clean(reference: Reference) -> Document:
    """Return the title and the text without HTML, with single spaces, in NFC."""
    return Document(cleaned(reference.title or ""), cleaned(text_of(reference.payload)))


clean.version = "1"  # type: ignore[attr-defined]


def name_of(ingest: Ingest) -> str:
    """Return the name of a function, and its version if it has one."""
    if ingest is clean:
        name = "plain"
    else:
        name = f"{ingest.__module__}:{getattr(ingest, '__qualname__', type(ingest).__qualname__)}"
    return f"{name} {getattr(ingest, 'version', '')}".strip()


def text_of(payload: Mapping[str, Any]) -> str:
    """Return the text in a payload: a field of one of these names, whatever form it has."""
    for name in TEXTS:
        if found := "\n".join(_texts(payload.get(name))):
            return found
    return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(value.get("value"))
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def cleaned(text: str) -> str | None:
    """Return readable lines: no HTML, no empty line, single spaces; None if nothing is left."""
    if _TAG.search(text):
        parser = _Readable()
        parser.feed(text)
        parser.close()
        text = "".join(parser.parts)
    lines = (" ".join(line.split()) for line in unicodedata.normalize("NFC", text).splitlines())
    return printable("\n".join(line for line in lines if line), keep="\n") or None


class _Readable(HTMLParser):
    """Collects what a browser would show, a line for each block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self._unseen += tag in _UNSEEN
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN and self._unseen > 0
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(" ".join(data.splitlines()))

    def _break(self, tag: str) -> None:
        if tag not in _INLINE:
            self.parts.append("\n")
