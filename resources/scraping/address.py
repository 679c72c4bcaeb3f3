"""The client of a source, and the call that its address stands for."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from resources.http.address import without_credentials
from resources.http.client import Call, HttpClient
from resources.http.faults import DEFAULT_TIMEOUTS, Timeouts
from resources.scraping.errors import scrape_errors
from resources.scraping.options import HttpOptions
from resources.scraping.reference import Checkpoint
from resources.scraping.source import Source


def split_address(url: str, options: HttpOptions, most_bytes: int) -> tuple[str, Call]:
    """Return the folder of an address, and the call of its last part with the parameters in it."""
    parts = urlsplit(url)
    folder, _, last = parts.path.rpartition("/")
    params = dict(parse_qsl(parts.query, keep_blank_values=True))
    timeouts = Timeouts(read=options.timeout, total=max(DEFAULT_TIMEOUTS.total, 4 * options.timeout))
    call = Call(last, params, timeouts=timeouts, most_bytes=most_bytes)
    return urlunsplit((parts.scheme, parts.netloc, folder, "", "")), call


def client_of(source: Source, folder: str, last: str, options: HttpOptions) -> HttpClient:
    return HttpClient(
        folder,
        errors=scrape_errors(source.name, without_credentials(folder), last),
        secret=source.token,
        secret_header=options.token_header or None,
    )


def conditions(since: Checkpoint) -> dict[str, str]:
    """Return the headers with which an unchanged source answers 304."""
    named = {"If-None-Match": since.etag, "If-Modified-Since": since.last_modified}
    return {name: value for name, value in named.items() if value}


def validators(headers: Mapping[str, str]) -> Checkpoint:
    """Return the checkpoint that an answer gives by its headers."""
    return Checkpoint(headers.get("ETag", ""), headers.get("Last-Modified", ""))
