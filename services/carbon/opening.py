"""Opens the carbon service from its settings: the one way for commands, runs and sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.carbon.catalogue import catalogue
from domain.carbon.jobs import ALL_KINDS
from domain.carbon.tables import TABLES
from resources.objects.staging import Staging
from services.carbon.service import CarbonService
from services.carbon.settings import CarbonSettings
from services.storage import open_lake, open_ledger

if TYPE_CHECKING:
    from resources.feeds.client import FeedClient


def open_service(settings: CarbonSettings, *, write: bool = False) -> CarbonService:
    """`write` migrates the ledger."""
    return CarbonService(
        catalogue=catalogue(),
        lake=open_lake(settings, TABLES),
        ledger=open_ledger(settings, ALL_KINDS, write=write),
        staging=Staging.at(settings.uploads),
        feeds=_feeds(settings),
        inbox_folder=settings.carbon_inbox,
        years=range(settings.carbon_years[0], settings.carbon_years[1] + 1),
    )


SETTINGS = {"manual": "PERENNIAL_CARBON_APP", "api": "PERENNIAL_CARBON_API"}
"""By origin, how the names of its settings begin."""


def _feeds(settings: CarbonSettings) -> dict[str, FeedClient]:
    """One client per application whose address is set."""
    addresses = {
        "manual": (settings.carbon_app_url, settings.carbon_app_token),
        "api": (settings.carbon_api_url, settings.carbon_api_token),
    }
    if not any(url for url, _ in addresses.values()):
        return {}  # without importing what speaks HTTP: commands that only read are to stay fast
    from resources.feeds.client import FeedClient

    return {
        origin: FeedClient(origin, url, token.get_secret_value(), setting=SETTINGS[origin])
        for origin, (url, token) in addresses.items()
        if url
    }
