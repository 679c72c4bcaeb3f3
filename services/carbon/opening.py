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
    )


def _feeds(settings: CarbonSettings) -> dict[str, FeedClient]:
    if not settings.polls_feeds:
        return {}  # without importing what speaks HTTP: commands that only read are to stay fast
    from services.carbon.feed_clients import open_feeds

    return open_feeds(
        manual=(settings.carbon_app_url or "", settings.carbon_app_token.get_secret_value()),
        api=(settings.carbon_api_url or "", settings.carbon_api_token.get_secret_value()),
    )
