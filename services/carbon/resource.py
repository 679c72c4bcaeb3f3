"""The carbon domain as a Dagster resource: lake, ledger and staged files behind one name."""

import dagster as dg
from pydantic import PrivateAttr

from domain.carbon.catalogue import catalogue
from domain.carbon.jobs import ALL_KINDS
from domain.carbon.tables import TABLES
from resources.lake.resource import LakeResource
from resources.ledger.resource import LedgerResource
from services.carbon.service import CarbonService


class CarbonResource(dg.ConfigurableResource):
    """The carbon domain, opened once for one run or one look."""

    lake: LakeResource
    ledger: LedgerResource
    uploads: str
    drop: str = ""
    app_url: str = ""
    app_token: str = ""
    api_url: str = ""
    api_token: str = ""
    _opened: CarbonService | None = PrivateAttr(default=None)

    def open(self) -> CarbonService:
        if self._opened is None:
            from resources.objects.staging import Staging
            from services.carbon.feed_clients import open_feeds

            self._opened = CarbonService(
                catalogue=catalogue(),
                lake=self.lake.open(TABLES, {}),
                ledger=self.ledger.open(ALL_KINDS),
                staging=Staging.at(self.uploads),
                feeds=open_feeds(
                    manual=(self.app_url, self.app_token),
                    api=(self.api_url, self.api_token),
                ),
            )
        return self._opened
