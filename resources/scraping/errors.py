"""What can go wrong with a source of references, as types, and nothing else.

The type says whether waiting helps (`TransientResourceError`) or a person must act (`PermanentRunnerError`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from domain.shared.error import InfrastructureError, PermanentRunnerError, TransientResourceError
from resources.http.errors import ErrorTypes

TOKENS = "PERENNIAL_REFERENCES_TOKENS"
SOURCES = "PERENNIAL_REFERENCES_SOURCES"
TOO_LARGE = f"ask the source for less at once: `size` and `per_page` in its options, or its url, in {SOURCES}"

Made = TypeVar("Made", bound=InfrastructureError)


class ScrapeDown(TransientResourceError):
    """No usable answer: a time-out, a broken connection, HTTP 5xx."""

    reason_code = "scrape_down"
    remedy = f"nothing, unless it lasts: then ask who runs the source, or correct its url in {SOURCES}"


class ScrapeRateLimited(TransientResourceError):
    """The source asks for a pause (HTTP 429)."""

    reason_code = "scrape_rate_limit"
    remedy = f"nothing, unless it lasts: then scrape the source less often (its `every` in {SOURCES})"
    retry_in_run = False


class BadScrape(TransientResourceError):
    """An answer that is not what the source's settings say, too large, or no well-formed feed."""

    reason_code = "scrape_bad_answer"
    remedy = f"nothing, unless it lasts: then correct url and options of the source in {SOURCES}"


class ScrapeIncomplete(TransientResourceError):
    """The source gave fewer references than it said it has."""

    reason_code = "scrape_incomplete"
    remedy = f"nothing, unless it lasts: then correct `total` in the options of the source in {SOURCES}"


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


def scrape_errors(source: str, folder: str = "", last: str = "") -> ErrorTypes:
    """Return the error types of a source that is read over HTTP, each naming the source and its address."""

    def named(make: Callable[..., Made], **values: str) -> Callable[..., Made]:
        def make_named(text: str, **more: Any) -> Made:
            text = text.removeprefix(f"{last}: ").replace(f"({folder})", f"({folder}/{last})")
            return make(
                f"{source}: {text.replace(f'from {folder}', f'from {folder}/{last}')}", **values, **more
            )

        return make_named

    refused = named(
        ScrapeTokenRefused, remedy=f"set {source}=TOKEN in {TOKENS} to a token that the source knows"
    )
    return ErrorTypes(
        down=named(ScrapeDown),
        failing=named(ScrapeDown),
        rate_limited=named(ScrapeRateLimited),
        bad_body=_of_body(named(BadScrape)),
        unauthorized=refused,
        forbidden=refused,
        wrong_address=named(
            WrongScrapeAddress, remedy=f"set the url of {source} in {SOURCES} to the address of the source"
        ),
    )


def _of_body(make: Callable[..., BadScrape]) -> Callable[..., BadScrape]:
    def make_of_body(text: str) -> BadScrape:
        return make(text, remedy=TOO_LARGE) if "larger than" in text else make(text)

    return make_of_body
