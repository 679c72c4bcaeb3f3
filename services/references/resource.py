"""The references service as a Dagster resource."""

import dagster as dg
from pydantic import PrivateAttr

from services.references.opening import open_service
from services.references.service import ReferencesService
from services.references.settings import ReferencesSettings
from services.resource import kept


class ReferencesResource(dg.ConfigurableResource):
    """The references domain, opened once for one run or one pass, from the text of its settings."""

    settings: dict[str, str]
    _opened: ReferencesService | None = PrivateAttr(default=None)

    def open(self) -> ReferencesService:
        if self._opened is None:
            settings = ReferencesSettings.read(self.settings)
            self._opened = kept(settings, ["refs"], lambda: open_service(settings, write=True))
        return self._opened
