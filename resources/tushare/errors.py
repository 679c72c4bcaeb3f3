"""What can go wrong with Tushare, as types, and nothing else.

The type says whether waiting helps (`TransientResourceError`), whether the short waits inside a run are
enough (`retry_in_run`), or whether a person must act (`PermanentRunnerError`).
"""

from __future__ import annotations

from domain.shared.error import PermanentRunnerError, TransientResourceError
from resources.http.errors import ErrorTypes


class SourceDown(TransientResourceError):
    """No usable answer: a time-out, a broken connection, half a body, a page instead of JSON."""

    reason_code = "source_down"


class SourceFails(SourceDown):
    """It can be reached, and answers that it failed: HTTP 5xx."""

    reason_code = "source_fails"


class BadAnswer(TransientResourceError):
    """An answer that is not the table we asked for: wrong shape, missing field, a value that is no number."""

    reason_code = "bad_answer"


class UnknownRefusal(TransientResourceError):
    """The source refused with a code and a text that are not classified yet (see `messages.py`)."""

    reason_code = "unknown_refusal"


class RateLimited(TransientResourceError):
    """Too many calls in this minute, or too many at once (HTTP 429)."""

    reason_code = "rate_limit"
    retry_in_run = False


class QuotaUsedUp(TransientResourceError):
    """The calls of this hour or day are spent; `retry_after` reaches to the next one."""

    reason_code = "quota"
    remedy = "Wait for the next hour or day, or get an account with more points."
    retry_in_run = False


class TokenRefused(PermanentRunnerError):
    """There is no token, or the source does not know it."""

    reason_code = "token"
    remedy = "Set TUSHARE_TOKEN to the token shown in your Tushare account."


class NotPermitted(PermanentRunnerError):
    """The token is good, but its account may not call this endpoint."""

    reason_code = "permission"
    remedy = "The account behind TUSHARE_TOKEN needs more points or this endpoint's own permission."


class RequestRefused(PermanentRunnerError):
    """The source does not understand the call: no such endpoint, a parameter is missing or wrong."""

    reason_code = "bad_request"
    remedy = "Correct the endpoint's name or parameters in the catalogue."


class WrongAddress(PermanentRunnerError):
    """Something answers, but it is not Tushare: a redirect, HTTP 404 or 405; or the URL is none."""

    reason_code = "wrong_address"
    remedy = "Set TUSHARE_URL to the base address of a Tushare server."


class Truncated(PermanentRunnerError):
    """A page came back full and there is no narrower way to ask, so rows are probably missing."""

    reason_code = "truncated"
    remedy = "Give this endpoint a way to split its calls in the catalogue."


HTTP_ERRORS = ErrorTypes(
    down=SourceDown,
    failing=SourceFails,
    rate_limited=RateLimited,
    bad_body=BadAnswer,
    unauthorized=TokenRefused,
    forbidden=NotPermitted,
    wrong_address=WrongAddress,
)
