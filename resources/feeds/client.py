"""Reading the feed of an application: what changed there, and entries page by page.

    GET <url>/changes?after=CURSOR
        {"changes": [{"data_entry_type", "year", "institution", "version"}], "cursor": …, "more": false}
    GET <url>/entries?data_entry_type=…&year=…&institution=…&page=PAGE
        {"version": …, "entries": [{"entry_id", "unit_id", …}], "next": PAGE or null}

Without `after` the answer lists everything. We only read, and every call is tried once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from domain.shared.hashing import digest
from resources.feeds.answers import Change, parse_change, parse_cursor, parse_entries, parse_text
from resources.feeds.errors import ChangedMeanwhile, feed_errors
from resources.http.client import Call, HttpClient
from resources.http.faults import DEFAULT_TIMEOUTS, Timeouts

CHANGES_TIMEOUTS = Timeouts(connect=5.0, read=10.0, total=15.0)
"""The list of changes is a short answer, and a sensor waits for it."""
MOST_BYTES = 1 << 30
"""Of the entries of one change, as of one file: pages are held until the last of them has come."""


@dataclass(frozen=True)
class ChangeList:
    changes: tuple[Change, ...]
    cursor: str


@dataclass(frozen=True)
class Entries:
    """All entries of one type, year and institution, in one version."""

    version: str
    rows: pa.Table


class FeedClient:
    """One application. `setting` is how the names of its settings begin, for remedies."""

    def __init__(
        self,
        origin: str,
        url: str,
        token: str = "",
        *,
        setting: str = "",
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.origin = origin
        self.setting = setting
        self._http = HttpClient(url, errors=feed_errors(setting), secret=token)
        self.shown_url = self._http.shown_url
        self._fingerprint = digest([origin, url.rstrip("/"), token])
        self._timeouts = timeouts
        self._most_bytes = most_bytes

    def __repr__(self) -> str:
        return f"FeedClient({self.origin!r}, {self.shown_url!r})"

    def fingerprint(self) -> str:
        """Changes with everything a permanent refusal may have been about."""
        return self._fingerprint

    def changes(self, after: str = "", patience: float = float("inf")) -> ChangeList:
        """What changed since a cursor, or everything. After `patience` seconds no further page is asked for:
        the returned cursor leads on from there. An application that forgot a cursor answers with everything.
        """
        call = Call("changes", {"after": after} if after else {}, timeouts=CHANGES_TIMEOUTS)
        pages: list[ChangeList] = []
        until = self._http.monotonic() + patience
        with closing(self._http) as http:
            for page in http.pages(call, self._read_changes):
                pages.append(page)
                if http.monotonic() > until:
                    break
        return ChangeList(tuple(chain.from_iterable(page.changes for page in pages)), pages[-1].cursor)

    def _read_changes(self, answer: dict[str, Any]) -> tuple[ChangeList, Mapping[str, str] | None]:
        found = [parse_change(one, self.origin) for one in answer["changes"]]
        given = {} if answer.get("cursor") == "" else answer
        cursor, more = parse_cursor(given, "cursor") or "", answer.get("more") is True
        if more and not cursor:
            raise ValueError("there is more, and no cursor that leads on")
        return ChangeList(tuple(found), cursor), {"after": cursor} if more else None

    def entries(self, data_entry_type: str, year: int, institution: str) -> Entries:
        """All entries; ChangedMeanwhile if their version differs between two pages."""
        params = {"data_entry_type": data_entry_type, "year": str(year), "institution": institution}

        def read(answer: dict[str, Any]) -> tuple[tuple[str, pa.Table], Mapping[str, str] | None]:
            page = parse_text(answer["version"], "version"), parse_entries(answer["entries"])
            following = parse_cursor(answer, "next")
            return page, None if following is None else params | {"page": following}

        pages: dict[str, list[pa.Table]] = {}
        size = 0
        with closing(self._http) as http:
            for version, rows in http.pages(Call("entries", params, timeouts=self._timeouts), read):
                pages.setdefault(version, []).append(rows)
                size += rows.nbytes
                if size > self._most_bytes:
                    raise http.bad_body("entries", f"more than {self._most_bytes >> 20:,} MiB of entries")
        if len(pages) > 1:
            found = " and ".join(sorted(pages))
            name = f"{data_entry_type}|{year} of {self.shown_url}"
            raise ChangedMeanwhile(f"{name} changed from version {found} while it was read")
        [(version, tables)] = pages.items()
        return Entries(version, pa.concat_tables(tables, promote_options="default"))
