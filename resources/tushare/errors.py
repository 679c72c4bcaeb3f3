"""What can go wrong with Tushare, as types, and nothing else.

Two questions are answered by the type, so that nobody has to look at a message again:

- is it hopeless until a person acts (`PermanentRunnerError`) or does waiting help (`TransientResourceError`)?
- `retry_in_run`: do the short waits inside a run (10, 20, 40 s) help, or only a later run? A used-up
  minute, hour or day is not given back by trying again, it only burns attempts.
"""

from __future__ import annotations

from datetime import timedelta

from domain.shared.error import PermanentRunnerError, TransientResourceError


class SourceDown(TransientResourceError):
    """No usable answer: a time-out, a broken connection, half a body, a page instead of JSON."""

    reason_code = "source_down"
    retry_in_run = True


class SourceFails(SourceDown):
    """It can be reached, and answers that it failed: HTTP 5xx."""

    reason_code = "source_fails"


class BadAnswer(TransientResourceError):
    """An answer that is not the table we asked for: wrong shape, missing field, a value that is no number."""

    reason_code = "bad_answer"
    retry_in_run = True


class UnknownRefusal(TransientResourceError):
    """The source refused with a code and a text that nobody has classified yet (see `messages.py`)."""

    reason_code = "unknown_refusal"
    retry_in_run = True


class RateLimited(TransientResourceError):
    """Too many calls in this minute, or too many at once (HTTP 429)."""

    reason_code = "rate_limit"
    retry_in_run = False


class QuotaUsedUp(TransientResourceError):
    """The calls of this hour or day are spent; `retry_after` reaches to the next one."""

    reason_code = "quota"
    retry_in_run = False

    def __init__(self, message: str, *, retry_after: timedelta) -> None:
        super().__init__(
            message,
            retry_after=retry_after,
            remedy="Wait for the next hour or day, or get an account with more points.",
        )


class TokenRefused(PermanentRunnerError):
    """There is no token, or the source does not know it."""

    reason_code = "token"
    retry_in_run = False

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="Set TUSHARE_TOKEN to the token shown in your Tushare account.")


class NotPermitted(PermanentRunnerError):
    """The token is good, but its account may not call this endpoint."""

    reason_code = "permission"
    retry_in_run = False

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            remedy="The account behind TUSHARE_TOKEN needs more points or this endpoint's own permission.",
        )


class RequestRefused(PermanentRunnerError):
    """The source does not understand the call: no such endpoint, a parameter is missing or wrong."""

    reason_code = "bad_request"
    retry_in_run = False

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="Correct the endpoint's name or parameters in the catalogue.")


class WrongAddress(PermanentRunnerError):
    """Something answers, but it is not the service: a redirect, HTTP 404 or 405, plain http to a far host."""

    reason_code = "wrong_address"
    retry_in_run = False

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="Set TUSHARE_URL to the base address of a Tushare server.")


class Truncated(PermanentRunnerError):
    """A page came back full and there is no narrower way to ask, so rows are probably missing."""

    reason_code = "truncated"
    retry_in_run = False

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="Give this endpoint a way to split its calls in the catalogue.")
