"""Which error of a service a fault of the HTTP exchange becomes. Imports no HTTP library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus

from domain.shared.error import InfrastructureError, TransientResourceError

_ONE_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class ErrorTypes:
    """The errors of one service, by what the exchange met. Each is called with the message."""

    down: Callable[..., TransientResourceError]
    """A time-out, a broken connection, a status that has no better name."""
    failing: Callable[..., TransientResourceError]
    """HTTP 5xx."""
    rate_limited: Callable[..., TransientResourceError]
    """HTTP 429; `retry_after` is a minute if the service does not say how long."""
    bad_body: Callable[..., TransientResourceError]
    """A body that is too large or not what the protocol says."""
    unauthorized: Callable[[str], InfrastructureError]
    forbidden: Callable[[str], InfrastructureError]
    wrong_address: Callable[[str], InfrastructureError]
    """A redirect, HTTP 404, 405 or 410, a web page instead of JSON."""

    def of_status(self, status: int, text: str, retry_after: timedelta | None) -> InfrastructureError:
        """The error for a status that is no success."""
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return self.rate_limited(text, retry_after=retry_after or _ONE_MINUTE)
        if status == HTTPStatus.UNAUTHORIZED:
            return self.unauthorized(text)
        if status == HTTPStatus.FORBIDDEN:
            return self.forbidden(text)
        if status < HTTPStatus.BAD_REQUEST or status in (404, 405, 410):
            return self.wrong_address(text)
        failed = self.failing if status >= HTTPStatus.INTERNAL_SERVER_ERROR else self.down
        return failed(text, retry_after=retry_after)
