"""Reading the feed of an application: what changed there, and what it holds page by page.

    GET <url>/changes, then …/changes?after=CURSOR while there is more
        {"changes": [{"kind", "data_entry_type", "year", "institution", "version"}],
         "cursor": …, "more": false}
    GET <url>/entries?data_entry_type=…&year=…&institution=…&page=PAGE
        {"version": …, "entries": [{"entry_id", "unit_id", …}], "next": PAGE or null}
    GET <url>/factors?data_entry_type=…&year=…&institution=…&page=PAGE
        {"version": …, "factors": [{"classification", "value", "unit", …}], "next": PAGE or null}
    GET <url>/units?year=…&institution=…&page=PAGE
        {"version": …, "units": [{"unit_id", "parent_id", "name"}], "next": PAGE or null}

We only read, and every call is tried once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from domain.shared.hashing import digest
from resources.feeds.answers import Change, parse_change, parse_cursor, parse_rows, parse_text
from resources.feeds.errors import ChangedMeanwhile, feed_errors
from resources.http.client import Call, HttpClient
from resources.http.faults import DEFAULT_TIMEOUTS, Timeouts

CHANGES_TIMEOUTS = Timeouts(connect=5.0, read=10.0, total=15.0)
"""The list of changes is a short answer, and a sensor waits for it."""
MOST_BYTES = 1 << 30
"""Of the rows of one change, as of one file: pages are held until the last of them has come."""


@dataclass(frozen=True)
class Rows:
    """All rows of one scope, in one version."""

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

    def changes(self) -> list[Change]:
        """Everything that the application holds, page by page."""
        with closing(self._http) as http:
            pages = list(http.pages(Call("changes", timeouts=CHANGES_TIMEOUTS), self._read_changes))
        return [change for page in pages for change in page]

    def _read_changes(self, answer: dict[str, Any]) -> tuple[list[Change], Mapping[str, str] | None]:
        found = [parse_change(one, self.origin) for one in answer["changes"]]
        if answer.get("more") is not True:
            return found, None
        if not answer.get("cursor"):
            raise ValueError("there is more, and no cursor that leads on")
        return found, {"after": parse_cursor(answer, "cursor") or ""}

    def read(self, kind: str, year: int, institution: str, data_entry_type: str = "") -> Rows:
        """All units, factors or entries of a scope; ChangedMeanwhile if their version differs between two
        pages."""
        params = {"year": str(year), "institution": institution}
        params |= {"data_entry_type": data_entry_type} if data_entry_type else {}

        def read(answer: dict[str, Any]) -> tuple[tuple[str, pa.Table], Mapping[str, str] | None]:
            page = parse_text(answer["version"], "version"), parse_rows(answer[kind], kind)
            following = parse_cursor(answer, "next")
            return page, None if following is None else params | {"page": following}

        pages: dict[str, list[pa.Table]] = {}
        size = 0
        with closing(self._http) as http:
            for version, rows in http.pages(Call(kind, params, timeouts=self._timeouts), read):
                pages.setdefault(version, []).append(rows)
                size += rows.nbytes
                if size > self._most_bytes:
                    raise http.bad_body(kind, f"more than {self._most_bytes >> 20:,} MiB of {kind}")
        if len(pages) > 1:
            found = " and ".join(sorted(pages))
            name = f"{kind} {'|'.join(filter(None, (data_entry_type, str(year))))} of {self.shown_url}"
            raise ChangedMeanwhile(f"{name} changed from version {found} while it was read")
        [(version, tables)] = pages.items()
        return Rows(version, pa.concat_tables(tables, promote_options="default"))
