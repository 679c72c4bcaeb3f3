"""The market's service as a Dagster resource."""

import dagster as dg
from pydantic import PrivateAttr

from services.market.opening import open_service
from services.market.service import MarketService
from services.market.settings import MarketSettings
from services.resource import kept


class MarketResource(dg.ConfigurableResource):
    """The market domain, opened once for one run or one pass, from the text of its settings."""

    settings: dict[str, str]
    _opened: MarketService | None = PrivateAttr(default=None)

    def open(self) -> MarketService:
        if self._opened is None:
            settings = MarketSettings.read(self.settings)
            self._opened = kept(settings, ["market"], lambda: open_service(settings, write=True))
        return self._opened
