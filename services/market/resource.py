"""The market's service as a Dagster resource."""

import dagster as dg
from pydantic import PrivateAttr

from services.market.history import Comparison
from services.market.opening import open_service
from services.market.service import MarketService
from services.market.settings import MarketSettings
from services.resource import kept

_COMPARISONS: dict[str, Comparison] = {}


class MarketResource(dg.ConfigurableResource):
    """The market domain, opened once for one run or one pass, from the text of its settings."""

    settings: dict[str, str]
    _opened: MarketService | None = PrivateAttr(default=None)

    def open(self) -> MarketService:
        if self._opened is None:
            settings = MarketSettings.read(self.settings)
            self._opened = kept(settings, ["market"], lambda: open_service(settings, write=True))
            # The passes of one process compare the older days once.
            known = _COMPARISONS.setdefault(settings.catalog_url, self._opened.comparison)
            self._opened.comparison = known
        return self._opened

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """A command makes many runs in one process: the connections of those that ended are closed."""
        if self._opened is not None:
            self._opened.disconnect()
