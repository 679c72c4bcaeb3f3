"""The carbon service as a Dagster resource."""

import dagster as dg
from pydantic import PrivateAttr

from services.carbon.opening import open_service
from services.carbon.service import CarbonService
from services.carbon.settings import CarbonSettings
from services.resource import kept


class CarbonResource(dg.ConfigurableResource):
    """The carbon domain, opened once for one run or one pass, from the text of its settings."""

    settings: dict[str, str]
    _opened: CarbonService | None = PrivateAttr(default=None)

    def open(self) -> CarbonService:
        if self._opened is None:
            settings = CarbonSettings.read(self.settings)
            self._opened = kept(settings, ["carbon"], lambda: open_service(settings, write=True))
        return self._opened
