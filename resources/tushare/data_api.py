"""The `tushare` package's `DataApi` with a `query` that raises typed errors.

The stock `query` turns any HTTP error into an empty frame, loses the code of a refusal and sends the
token over plain http. Everything else about the class, `api.daily(trade_date=…)` included, works as
its users know it. It is constructed directly: `pro_api` and `set_token` write the token to a file in
the home folder.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from tushare.pro.client import DataApi

from domain.shared.clock import Clock
from domain.shared.error import InfrastructureError, PerennialError
from resources.http.client import Call, HttpClient
from resources.http.faults import Timeouts
from resources.http.secret import MASK
from resources.tushare.decode import Rows, read_answer, read_rows
from resources.tushare.errors import RateLimited
from resources.tushare.messages import MINUTE, refusal
from resources.tushare.pace import Pacer

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)


class CheckedDataApi(DataApi):  # type: ignore[misc]  # the package has no types
    def __init__(self, *, http: HttpClient, timeouts: Timeouts, pacer: Pacer, clock: Clock) -> None:
        super().__init__(token=MASK)  # the package's own copy of the token is never used
        self._http = http
        self._timeouts = timeouts
        self._pacer = pacer
        self._clock = clock

    def query(self, api_name: str, fields: str | Sequence[str] = "", **kwargs: Any) -> pd.DataFrame:
        """One call as a pandas frame of the source's raw values, as the package's users expect it."""
        import pandas as pd

        names = fields if isinstance(fields, str) else ",".join(fields)
        rows = self.rows(api_name, names, kwargs)
        if rows.has_more:
            logger.warning(
                "%s: the source has more than these %d rows; ask for less at a time", api_name, rows.count
            )
        return pd.DataFrame(dict(zip(rows.fields, rows.columns, strict=True)), columns=list(rows.fields))

    def rows(self, api_name: str, fields: str, params: Mapping[str, Any]) -> Rows:
        """The rows of one paced call, one attempt; or a typed error."""
        self._pacer.take(api_name)
        try:
            return self._attempt(api_name, fields, params)
        except RateLimited as error:
            # "So many a minute" is over with the minute; a number of seconds is meant as it is.
            self._pacer.pause(api_name, None if error.retry_after == MINUTE else error.retry_after)
            raise
        except PerennialError:
            raise
        except Exception as error:  # noqa: BLE001 - the text of a bug may hold the call, token and all
            unclassified = self._unclassified(api_name, error)
        raise unclassified

    def _attempt(self, api_name: str, fields: str, params: Mapping[str, Any]) -> Rows:
        payload = {"api_name": api_name, "params": dict(params), "fields": fields}
        call = Call(api_name, payload=payload, timeouts=self._timeouts)
        # The body gets no name here: a frame that holds it could show a token that the server echoed.
        answer = read_answer(api_name, self._http.send(call), self._http.clean)
        if answer.code != 0:
            raise refusal(api_name, answer.code, answer.message, self._clock())
        return read_rows(api_name, answer.data, self._http.clean)

    def _unclassified(self, api_name: str, error: Exception) -> InfrastructureError:
        """An error that says where a bug was met, without the values it holds."""
        raised = extract_tb(error.__traceback__)[-1]
        where = f"{Path(raised.filename).name}:{raised.lineno}"
        text = self._http.clean(str(error))
        return InfrastructureError(
            f"{api_name}: {type(error).__name__} at {where}: {text}", reason_code="unclassified"
        )

    def __getattr__(self, name: str) -> Any:
        # Copying, pickling and notebooks probe for private names; those are no endpoints.
        if name.startswith("_"):
            raise AttributeError(name)
        return super().__getattr__(name)
