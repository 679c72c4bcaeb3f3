"""Scrapes RSS and Atom feeds. feedparser reads the bytes that our HTTP client fetched.

Titles and contents are kept as they came, HTML included: ingestion cleans them. A feed that is not
well-formed is an error: what a lenient reader makes of it may be half of it.
"""

from __future__ import annotations

from calendar import timegm
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from time import struct_time
from typing import Any
from xml.sax import SAXParseException

from domain.shared.error import InfrastructureError
from resources.http.client import HttpClient
from resources.scraping.address import client_of, conditions, split_address, validators
from resources.scraping.checks import parse_id
from resources.scraping.errors import BadScrape, scrape_errors
from resources.scraping.fields import parse_time
from resources.scraping.options import MOST_OF_A_FEED, FeedOptions
from resources.scraping.reference import Checkpoint, Read, Scrape, ScrapedReference
from resources.scraping.source import Source

_KEPT = ("title", "link", "summary", "author", "published", "updated", "rights", "language", "comments")
_HARMLESS = ("CharacterEncodingOverride", "NonXMLContentType")
"""What feedparser notes of feeds that it read whole."""


class FeedReader:
    """A source that is an RSS or Atom feed."""

    def __init__(self, source: Source) -> None:
        self.source = source.name
        self._of = source
        self._options = FeedOptions.model_validate(source.options)
        self._folder, self._call = split_address(source.url, self._options, MOST_OF_A_FEED)

    def fetch(self, since: Checkpoint) -> Scrape:
        with closing(client_of(self._of, self._folder, self._call.path, self._options)) as http:
            answer = http.receive(replace(self._call, headers=conditions(since)))
        if answer.unchanged:
            return Scrape(None, since)
        entries, headers = self._entries(http, answer.body, answer.headers), answer.headers
        del answer  # no frame of a traceback holds a body, which may echo the token
        if isinstance(entries, InfrastructureError):
            raise entries
        return Scrape(self._read(entries, validators(headers)), source=self.source)

    def _entries(
        self, http: HttpClient, body: bytes, headers: Mapping[str, str]
    ) -> list[Any] | InfrastructureError:
        path = self._call.path
        if body.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
            return scrape_errors(self.source).wrong_address(
                f"a web page instead of a feed ({http.shown_url}/{path})"
            )
        if b"<!ENTITY" in body.replace(b"\0", b"").upper():
            return http.bad_body(path, "the feed declares entities, which may grow without end")
        import feedparser

        try:
            feed = feedparser.parse(
                BytesIO(body),  # of bytes that are the name of a file or an address it would open that
                response_headers={"content-type": headers.get("Content-Type", "")},
                sanitize_html=False,
                resolve_relative_uris=False,
            )
        except Exception as error:  # noqa: BLE001 - its lenient reader has no errors of its own
            return http.bad_body(path, f"the feed cannot be read: {type(error).__name__}")
        fault = feed.get("bozo_exception")
        if feed.bozo and type(fault).__name__ not in _HARMLESS:
            return http.bad_body(path, f"the feed is not well-formed: {_placed(fault, body)}")
        if not feed.get("version"):
            return http.bad_body(path, "the answer is no RSS or Atom feed")
        entries: list[Any] = feed.entries
        return entries

    def _read(self, entries: list[Any], checkpoint: Checkpoint) -> Read:
        for number, entry in enumerate(entries, start=1):
            yield self._reference(number, dict(entry))  # feedparser's own makes up values of other keys
        return checkpoint

    def _reference(self, number: int, entry: dict[str, Any]) -> ScrapedReference:
        link = entry.get("link") or None
        identity = link if self._options.id == "link" else entry.get("id") or link
        try:
            reference_id = parse_id(identity, "guid or link")
        except ValueError as error:
            raise BadScrape(f"entry {number} of {self.source}: {error}") from None
        moment = entry.get("published_parsed") or entry.get("updated_parsed")
        return ScrapedReference(
            id=reference_id,
            title=entry.get("title", ""),
            url=link,
            published_at=_time(moment) if moment else None,
            payload=_payload(reference_id, entry),
        )


def _placed(fault: Any, body: bytes) -> str:
    """Return what is wrong with a feed, in its line if it has one."""
    if isinstance(fault, SAXParseException):
        added = 0 if b"<?xml" in body[:100].replace(b"\0", b"") else 1  # by feedparser: a declaration
        return f"line {(fault.getLineNumber() or 1) - added}: {fault.getMessage()}"
    return str(fault)


def _time(moment: struct_time) -> datetime | None:
    try:
        return parse_time(timegm(moment))
    except ValueError:  # of the year -1, which feedparser makes of 0000-00-00
        return None


def _payload(reference_id: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return what the entry says, as it came; without what feedparser made of it."""
    payload: dict[str, Any] = {name: entry[name] for name in _KEPT if entry.get(name)}
    payload["id"] = reference_id
    if contents := [part.get("value", "") for part in entry.get("content", ())]:
        payload["content"] = contents
    if tags := [tag["term"] for tag in entry.get("tags", ()) if tag.get("term")]:
        payload["tags"] = tags
    if files := [link["href"] for link in entry.get("links", ()) if _is_file(link)]:
        payload["enclosures"] = files
    return payload


def _is_file(link: Any) -> bool:
    return link.get("rel") == "enclosure" and bool(link.get("href"))
