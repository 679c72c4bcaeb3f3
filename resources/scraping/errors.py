"""What can go wrong with a source of references, as types, and nothing else.

The type says whether waiting helps (`TransientResourceError`) or a person must act (`PermanentRunnerError`).
"""

from __future__ import annotations

from functools import partial

from domain.shared.error import PermanentRunnerError, TransientResourceError
from resources.http.errors import ErrorTypes

TOKENS = "PERENNIAL_REFERENCES_TOKENS"
SOURCES = "PERENNIAL_REFERENCES_SOURCES"


class ScrapeDown(TransientResourceError):
    """No usable answer: a time-out, a broken connection, HTTP 5xx."""

    reason_code = "scrape_down"


class ScrapeRateLimited(TransientResourceError):
    """The source asks for a pause (HTTP 429)."""

    reason_code = "scrape_rate_limit"
    retry_in_run = False


class BadScrape(TransientResourceError):
    """An answer that is not what the source's settings say, too large, or no well-formed feed."""

    reason_code = "scrape_bad_answer"


class ScrapeIncomplete(TransientResourceError):
    """The source gave fewer references than it said it has."""

    reason_code = "scrape_incomplete"


class DoubledIds(TransientResourceError):
    """Two references with different content have the same id."""

    reason_code = "scrape_doubled_ids"
    remedy = f"if it lasts, choose another field for ids in the options of the source in {SOURCES}"


class ScrapeTokenRefused(PermanentRunnerError):
    """The source wants a token, or refuses the one it got (HTTP 401, 403)."""

    reason_code = "scrape_token"


class WrongScrapeAddress(PermanentRunnerError):
    """Something answers, but it is not the source: a redirect, HTTP 404, a page."""

    reason_code = "scrape_wrong_address"


class ScrapeFolderUnreadable(TransientResourceError):
    """The folder of a source, or a file in it, cannot be read."""

    reason_code = "scrape_folder"
    remedy = "make the folder and its files readable"


def scrape_errors(source: str) -> ErrorTypes:
    """Return the error types of a source that is read over HTTP."""
    refused = partial(
        ScrapeTokenRefused, remedy=f"set {source}=TOKEN in {TOKENS} to a token that the source knows"
    )
    return ErrorTypes(
        down=ScrapeDown,
        failing=ScrapeDown,
        rate_limited=ScrapeRateLimited,
        bad_body=BadScrape,
        unauthorized=refused,
        forbidden=refused,
        wrong_address=partial(
            WrongScrapeAddress, remedy=f"set the url of {source} in {SOURCES} to the address of the source"
        ),
    )
