"""The Tushare client: a request in, a complete typed Arrow table out, or a typed error.

One attempt per call: waiting and trying again belong to the caller (`error.retry_in_run`). A page that
came back full is asked for again in narrower parts, because the source cuts its answers silently.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa

from domain.shared.clock import Clock, machine_clock
from resources.http.address import is_loopback, with_scheme, without_credentials
from resources.http.client import HttpClient
from resources.http.faults import DEFAULT_TIMEOUTS, Timeouts
from resources.tushare.decode import to_table
from resources.tushare.errors import HTTP_ERRORS, BadAnswer, TokenRefused, Truncated, WrongAddress
from resources.tushare.pace import Pacer
from resources.tushare.request import TushareRequest

if TYPE_CHECKING:
    from resources.tushare.data_api import CheckedDataApi

logger = logging.getLogger(__name__)

Params = Mapping[str, str]
Narrow = Callable[[], Sequence[Params]]
"""Narrower parameters that together cover those of the request."""

OFFICIAL_URL = "https://api.tushare.pro/dataapi"
"""The base address of the stock client's own server, over https."""
_OFFICIAL_HOSTS = ("api.tushare.pro", "api.waditu.com")


class TushareClient:
    """Thread-safe; one per process is enough. `url` None is the official server over https."""

    def __init__(
        self,
        *,
        url: str | None,
        token: str,
        points: int,
        pacer: Pacer,
        timeout: Timeouts = DEFAULT_TIMEOUTS,
        clock: Clock = machine_clock,
    ) -> None:
        if not token.strip():
            raise TokenRefused("There is no Tushare token")
        self._points = points
        self._pacer = pacer
        self._clock = clock
        self._timeouts = timeout
        self._http = HttpClient(
            server_address(url),
            errors=HTTP_ERRORS,
            secret=token.strip(),
            secret_field="token",  # noqa: S106 - the name of the field
            clock=clock,
        )

    def __repr__(self) -> str:
        return f"TushareClient(url={self._http.shown_url!r}, points={self._points})"

    def close(self) -> None:
        """Closes the idle connections."""
        self._http.close()

    def fetch(self, request: TushareRequest, *, narrow: Narrow | None = None) -> pa.Table:
        """The whole answer. A full page is replaced by the pages of `narrow()`, which must not be full."""
        page, full = self._page(request, request.params)
        if not full:
            return page
        parts = [self._page(request, params) for params in (narrow() if narrow else ())]
        if not parts or any(full for _, full in parts):
            raise Truncated(
                f"{request.api_name}: the answer to {dict(request.params)} is full ({request.cap} rows or"
                " more) and there is no narrower way to ask"
            )
        return _union(request, page, [part for part, _ in parts])

    def _page(self, request: TushareRequest, params: Params) -> tuple[pa.Table, bool]:
        """One answer, and whether it is full, so that rows may be missing."""
        rows = self._api.rows(request.api_name, request.fields, params)
        return to_table(request, rows, self._http.clean), rows.count >= request.cap or rows.has_more

    @cached_property
    def _api(self) -> CheckedDataApi:
        """Made at the first call: the package and its pandas take 0.6 to 1 second to import."""
        from resources.tushare.data_api import CheckedDataApi

        return CheckedDataApi(http=self._http, timeouts=self._timeouts, pacer=self._pacer, clock=self._clock)


def server_address(url: str | None) -> str:
    """The base address; https, unless it is on this machine or has another scheme."""
    base = with_scheme((url or OFFICIAL_URL).strip())
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongAddress(f"{without_credentials(base)} is no http(s) address")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        logger.warning("The token travels unencrypted to %s", without_credentials(base))
    if parts.hostname in _OFFICIAL_HOSTS and parts.path in ("", "/"):
        return base.rstrip("/") + "/dataapi"  # the bare root of these hosts takes another form
    return base


def _union(request: TushareRequest, page: pa.Table, parts: Sequence[pa.Table]) -> pa.Table:
    """The parts without duplicates. The rows of the full page must be among them."""
    whole = _distinct(pa.concat_tables(parts))
    if lost := _distinct(pa.concat_tables([whole, page])).num_rows - whole.num_rows:
        asked = f"{request.api_name}: the full answer to {dict(request.params)}"
        raise BadAnswer(f"{asked} has {lost} rows that its narrower parts lack")
    return whole


def _distinct(table: pa.Table) -> pa.Table:
    # One thread keeps the order of first appearance.
    return table.group_by(table.column_names, use_threads=False).aggregate([]).cast(table.schema)
