"""The Tushare client: a request in, a complete typed Arrow table out, or a typed error.

One attempt per call: waiting and trying again belong to the caller (`error.retry_in_run`). A page that
came back full is asked for again in narrower parts, because the source cuts its answers silently.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import pyarrow as pa
from requests.adapters import BaseAdapter

from domain.shared.clock import Clock, machine_clock
from resources.http.address import is_loopback, with_scheme, without_credentials
from resources.http.client import HttpClient
from resources.http.faults import DEFAULT_TIMEOUTS, Timeouts
from resources.tushare.decode import to_table
from resources.tushare.errors import HTTP_ERRORS, BadAnswer, TokenRefused, Truncated, WrongAddress
from resources.tushare.pace import Pacer
from resources.tushare.request import Request

if TYPE_CHECKING:
    from resources.tushare.data_api import CheckedDataApi

logger = logging.getLogger(__name__)

Params = Mapping[str, str]
Narrow = Callable[[Params], Sequence[Params]]
"""Narrower parameter sets that together cover the given one; empty if there are none."""

OFFICIAL_URL = "https://api.tushare.pro/dataapi"
"""The base address of the stock client's own server, over https."""
_OFFICIAL_HOSTS = ("api.tushare.pro", "api.waditu.com")
_DEEPEST = 12


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
        transport: Callable[[], BaseAdapter] | None = None,
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
            transport=transport,
            clock=clock,
        )
        self._api_lock = threading.Lock()
        self._lazy_api: CheckedDataApi | None = None

    def __repr__(self) -> str:
        return f"TushareClient(url={self._http.shown_url!r}, points={self._points})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections."""
        self._http.close()

    def fetch(self, request: Request, *, narrow: Narrow | None = None) -> pa.Table:
        """The whole answer. A full page is replaced by the pages of `narrow(params)`, as deep as needed."""
        return self._fetch_whole(request, dict(request.params), narrow, path=())

    def _fetch_whole(
        self, request: Request, params: Params, narrow: Narrow | None, path: tuple[Params, ...]
    ) -> pa.Table:
        rows = self._api().rows(request.api_name, request.fields, params)
        page = to_table(request, rows, self._http.clean)
        if rows.count < request.cap and not rows.has_more:
            return page
        path = (*path, params)
        parts = [
            self._fetch_whole(request, dict(narrower), narrow, path)
            for narrower in _narrower(request, params, narrow, path)
        ]
        return _union(request, params, page, parts)

    def _api(self) -> CheckedDataApi:
        with self._api_lock:
            if self._lazy_api is None:
                from resources.tushare.data_api import CheckedDataApi

                self._lazy_api = CheckedDataApi(
                    http=self._http, timeouts=self._timeouts, pacer=self._pacer, clock=self._clock
                )
            return self._lazy_api


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


def _narrower(
    request: Request, params: Params, narrow: Narrow | None, path: tuple[Params, ...]
) -> list[Params]:
    parts: list[Params] = []
    for part in narrow(params) if narrow else ():
        if part in path:  # asking the same again cannot help
            parts = []
            break
        if part not in parts:
            parts.append(part)
    if not parts or len(path) > _DEEPEST:
        raise Truncated(
            f"{request.api_name}: the answer to {dict(params)} is full ({request.cap} rows or more)"
            " and there is no narrower way to ask"
        )
    return parts


def _union(request: Request, params: Params, page: pa.Table, parts: Iterable[pa.Table]) -> pa.Table:
    """The parts without duplicates. The rows of the cut-off page must be among them."""
    whole = _distinct(pa.concat_tables(parts))
    lost = _distinct(pa.concat_tables([whole, page])).num_rows - whole.num_rows
    if lost:
        asked = f"{request.api_name}: the full answer to {dict(params)}"
        raise BadAnswer(f"{asked} has {lost} rows that its narrower parts lack")
    return whole


def _distinct(table: pa.Table) -> pa.Table:
    # One thread keeps the order of first appearance.
    return table.group_by(table.column_names, use_threads=False).aggregate([]).cast(table.schema)
