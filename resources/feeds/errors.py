"""What can go wrong with an application's feed, as types, and nothing else."""

from __future__ import annotations

from functools import partial

from domain.shared.error import PermanentRunnerError, TransientResourceError
from resources.http.errors import ErrorTypes


class FeedDown(TransientResourceError):
    """No usable answer: a time-out, a broken connection, HTTP 5xx or 429."""

    reason_code = "feed_down"


class BadFeed(TransientResourceError):
    """An answer that is not what the protocol says."""

    reason_code = "bad_feed"


class ChangedMeanwhile(TransientResourceError):
    """Rows changed between two pages of them; read them again from the first page."""

    reason_code = "changed_meanwhile"


class FeedTokenRefused(PermanentRunnerError):
    """The application refuses the token (HTTP 401, 403)."""

    reason_code = "feed_token"


class WrongFeedAddress(PermanentRunnerError):
    """Something answers, but not a feed: a redirect, HTTP 404, a page."""

    reason_code = "wrong_feed_address"


def feed_errors(setting: str) -> ErrorTypes:
    """The error types of a feed whose settings begin with `setting`."""
    refused = partial(FeedTokenRefused, remedy=f"set {setting}_TOKEN to a token that the application knows")
    return ErrorTypes(
        down=FeedDown,
        failing=FeedDown,
        rate_limited=FeedDown,
        bad_body=BadFeed,
        unauthorized=refused,
        forbidden=refused,
        wrong_address=partial(
            WrongFeedAddress, remedy=f"set {setting}_URL to the address of the application's feed"
        ),
    )
