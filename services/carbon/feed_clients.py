"""The feeds of this office: one client per origin whose address is set."""

from __future__ import annotations

from collections.abc import Mapping

from domain.carbon.feeds import ORIGINS, Origin
from resources.feeds.client import FeedClient

SETTINGS: Mapping[Origin, str] = {"api": "PERENNIAL_CARBON_API", "manual": "PERENNIAL_CARBON_APP"}
"""By origin, how the names of its settings begin."""


def open_feeds(**addresses: tuple[str, str]) -> dict[str, FeedClient]:
    """By origin, a client for each address and token that is set."""
    given = {origin: addresses.get(origin, ("", "")) for origin in ORIGINS}
    return {
        origin: FeedClient(origin, url, token, setting=SETTINGS[origin])
        for origin, (url, token) in given.items()
        if url
    }
