"""Reading the feed of an application beside us: what changed there, and the entries of a place, page by page.

    GET <url>/changes?after=CURSOR
        {"changes": [{"data_entry_type", "year", "institution", "version"}], "cursor": …, "more": false}
    GET <url>/entries?data_entry_type=…&year=…&institution=…&page=PAGE
        {"version": …, "entries": [{"entry_id", "unit_id", …}], "next": PAGE or null}

Without `after` all places are told. We only read, and every call is tried once: whoever asked asks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson
import pyarrow as pa
import requests

from domain.carbon.feeds import ORIGINS, FeedChange, Origin
from domain.shared.clock import Clock, machine_clock
from domain.shared.error import InfrastructureError
from domain.shared.hashing import digest
from resources.feeds.answers import change_of, cursor_of, entries_of, joined, json_object, version_of
from resources.feeds.errors import BadFeed, ChangedMeanwhile, FeedDown, FeedTokenRefused, WrongFeedAddress
from resources.wire.http import (
    DEFAULT_TIMEOUTS,
    WIRE_FAULTS,
    BodyTooLarge,
    BodyTooSlow,
    Timeouts,
    fault_of,
    is_loopback,
    prepared,
    retry_after,
    whole_body,
)
from resources.wire.secret import Redactor, without_credentials

SETTINGS: Mapping[Origin, str] = {"api": "PERENNIAL_CARBON_API", "manual": "PERENNIAL_CARBON_APP"}
"""By origin, how the settings of its address and token begin."""
LISTENING = Timeouts(connect=5.0, read=10.0, total=15.0)
"""What changed is a short answer, and a sensor waits for it."""
MOST_PAGES = 100_000
"""A bound: a server that always has another page would never be done with."""
MOST_BYTES = 1 << 30
"""Of one place, as of one file: its pages are held until the last of them has come."""


@dataclass(frozen=True)
class Changes:
    places: tuple[FeedChange, ...]
    cursor: str


@dataclass(frozen=True)
class Entries:
    """All entries of a place, as they were in one version."""

    version: str
    rows: pa.Table


class FeedClient:
    """One application. `origin` is what its entries are to us."""

    def __init__(
        self,
        origin: Origin,
        url: str,
        token: str = "",
        *,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        most: int = MOST_BYTES,
        clock: Clock = machine_clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.origin = origin
        self._url = url.rstrip("/")
        self.shown_url = without_credentials(self._url)
        self._redactor = Redactor(token)
        self._timeouts = timeouts
        self._most = most
        self._clock = clock
        self._monotonic = monotonic

    def __repr__(self) -> str:
        return f"FeedClient({self.origin!r}, {self.shown_url!r})"

    def fingerprint(self) -> str:
        """Changes with everything a permanent refusal may have been about."""
        return digest([self.origin, self._url, self._redactor.reveal()])

    def changes(self, after: str = "", patience: float = float("inf")) -> Changes:
        """What changed since a cursor, or all there is. A cursor the application forgot is its business: it
        then tells all. After `patience` seconds no further page is asked for; the cursor leads on from there.
        """
        found: list[FeedChange] = []
        until = self._monotonic() + patience
        with self._session() as session:
            for _ in range(MOST_PAGES):
                answer = self._get(session, "changes", {"after": after} if after else {}, LISTENING)
                try:
                    found += [change_of(each, self.origin) for each in answer["changes"]]
                    cursor, more = cursor_of(answer), answer.get("more") is True
                except (KeyError, TypeError, ValueError) as error:
                    raise self._bad("changes", error) from None
                if not more or self._monotonic() > until:
                    return Changes(tuple(found), cursor)
                if cursor in ("", after):
                    raise self._bad("changes", ValueError("there is more, and no cursor that leads on"))
                after = cursor
        raise self._bad("changes", ValueError(f"more than {MOST_PAGES:,} pages"))

    def entries(self, place: FeedChange) -> Entries:
        """All entries of a place, in one version: changed while they are read, they are to be read again."""
        with self._session() as session:
            pages = list(self._pages(session, place))
        versions = {version for version, _ in pages}
        if len(versions) > 1:
            told = " and ".join(sorted(versions))
            raise ChangedMeanwhile(f"{place.partition} of {self.shown_url} was {told} while it was read")
        return Entries(versions.pop(), joined([rows for _, rows in pages]))

    def _pages(self, session: requests.Session, place: FeedChange) -> Iterator[tuple[str, pa.Table]]:
        asked = {
            "data_entry_type": place.data_entry_type,
            "year": str(place.year),
            "institution": place.institution,
        }
        page, size = "", 0
        for _ in range(MOST_PAGES):
            answer = self._get(session, "entries", asked | ({"page": page} if page else {}), self._timeouts)
            try:
                version, rows = version_of(answer), entries_of(answer["entries"])
                following = answer.get("next")
            except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
                raise self._bad("entries", error) from None
            yield version, rows
            size += rows.nbytes
            if size > self._most:
                raise self._bad("entries", ValueError(f"a place of more than {self._most >> 20:,} MiB"))
            if following is None:
                return
            if str(following) in ("", page):
                raise self._bad("entries", ValueError("the next page is this one"))
            page = str(following)
        raise self._bad("entries", ValueError(f"more than {MOST_PAGES:,} pages"))

    def _session(self) -> AbstractContextManager[requests.Session]:
        session = prepared(requests.Session(), loopback=is_loopback(urlsplit(self._url).hostname))
        session.headers["Accept"] = "application/json"
        return session

    def _get(
        self, session: requests.Session, what: str, asked: Mapping[str, str], timeouts: Timeouts
    ) -> Mapping[str, Any]:
        outcome = self._exchange(session, what, asked, timeouts)
        if isinstance(outcome, InfrastructureError):
            raise outcome
        try:
            return json_object(outcome)
        except orjson.JSONDecodeError as error:
            if outcome.lstrip()[:1] == b"<":
                raise WrongFeedAddress(self._said(what, "a page answers"), SETTINGS[self.origin]) from None
            raise self._bad(what, error) from None
        except ValueError as error:
            raise self._bad(what, error) from None

    def _exchange(
        self, session: requests.Session, what: str, asked: Mapping[str, str], timeouts: Timeouts
    ) -> bytes | InfrastructureError:
        # Returns its errors: no frame that holds the token is part of a traceback.
        token = self._redactor.reveal()
        deadline = self._monotonic() + timeouts.total
        try:
            with session.get(
                f"{self._url}/{what}",
                params=dict(asked),
                headers={"Authorization": f"Bearer {token}"} if token else {},
                timeout=(timeouts.connect, timeouts.read),
                stream=True,
                allow_redirects=False,  # a redirect would carry the token to another address
            ) as response:
                content = whole_body(response, deadline, self._monotonic)
        except BodyTooLarge as error:
            return BadFeed(self._said(what, str(error)))
        except BodyTooSlow as error:
            return FeedDown(self._said(what, f"{error} after {timeouts.total:g} s"))
        except WIRE_FAULTS as error:
            said = fault_of(error, timeouts).replace(self._url, self.shown_url)
            return FeedDown(self._said(what, said))
        return content if response.status_code == requests.codes.ok else self._refusal(response, what)

    def _refusal(self, response: requests.Response, what: str) -> InfrastructureError:
        status = response.status_code
        text, setting = self._said(what, f"HTTP {status}"), SETTINGS[self.origin]
        if status in (requests.codes.unauthorized, requests.codes.forbidden):
            return FeedTokenRefused(text, setting)
        if status < requests.codes.bad_request or status in (404, 405, 410):
            return WrongFeedAddress(text, setting)
        return FeedDown(text, retry_after=retry_after(response, self._clock()))

    def _bad(self, what: str, error: Exception) -> BadFeed:
        missing = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        return BadFeed(self._said(what, missing))

    def _said(self, what: str, said: str) -> str:
        return f"{what}: {self._redactor.clean(said)} ({self.shown_url})"


def feeds(**applications: tuple[str, str]) -> dict[str, FeedClient]:
    """By origin those whose address is set."""
    given = {origin: applications.get(origin, ("", "")) for origin in ORIGINS}
    return {origin: FeedClient(origin, url, token) for origin, (url, token) in given.items() if url}
