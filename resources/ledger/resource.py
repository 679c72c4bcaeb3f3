"""The work ledger as a Dagster resource."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg

from domain.shared.clock import machine_clock, stopped_at
from domain.shared.work import Kind

if TYPE_CHECKING:
    from resources.ledger.client import Ledger


_OPENED: dict[tuple[object, ...], "Ledger"] = {}


class LedgerResource(dg.ConfigurableResource):
    """The table of intent. `source` is stamped at the first write: another source is refused."""

    url: str
    source: str
    stopped_at: str = ""

    def open(self, kinds: Sequence[Kind]) -> "Ledger":
        from resources.ledger.client import Ledger

        def opened() -> "Ledger":
            clock = stopped_at(datetime.fromisoformat(self.stopped_at)) if self.stopped_at else machine_clock
            return Ledger.open(self.url, kinds=kinds, clock=clock)

        if self.url.startswith("postgresql"):
            # One per process: a sensor looks every few seconds, and a server's connections are few.
            key = (self.url, self.stopped_at, *(kind.name for kind in kinds))
            ledger = _OPENED[key] if key in _OPENED else _OPENED.setdefault(key, opened())
        else:
            ledger = opened()
        ledger.migrate()
        ledger.stamp_source(self.source)
        return ledger
