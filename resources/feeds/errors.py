"""What can go wrong with an application's feed, as types, and nothing else."""

from __future__ import annotations

from domain.shared.error import PermanentRunnerError, TransientResourceError


class FeedDown(TransientResourceError):
    """No usable answer: a time-out, a broken connection, HTTP 5xx or 429."""

    reason_code = "feed_down"


class BadFeed(TransientResourceError):
    """An answer that is not what the protocol says."""

    reason_code = "bad_feed"


class ChangedMeanwhile(TransientResourceError):
    """Entries changed between two pages of them: read whole or not at all."""

    reason_code = "changed_meanwhile"


class FeedTokenRefused(PermanentRunnerError):
    """The application does not let us in (HTTP 401, 403)."""

    reason_code = "feed_token"

    def __init__(self, message: str, setting: str) -> None:
        super().__init__(message, remedy=f"set {setting}_TOKEN to a token that the application knows")


class WrongFeedAddress(PermanentRunnerError):
    """Something answers, but not a feed: a redirect, HTTP 404, a page."""

    reason_code = "wrong_feed_address"

    def __init__(self, message: str, setting: str) -> None:
        super().__init__(message, remedy=f"set {setting}_URL to the address of the application's feed")
