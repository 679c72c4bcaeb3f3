"""The market as a Dagster resource: lake, ledger, source and rules behind one name."""

from datetime import date, time

import dagster as dg
from pydantic import PrivateAttr

from domain.market.catalogue import catalogue
from domain.market.observed import Rules
from domain.market.plan import KINDS
from domain.market.tables import all_tables, views
from resources.lake.resource import LakeResource
from resources.ledger.resource import LedgerResource
from resources.tushare.resource import TushareResource
from services.market.service import MarketService


class MarketResource(dg.ConfigurableResource):
    """The market domain, opened once for one run or one look."""

    lake: LakeResource
    ledger: LedgerResource
    tushare: TushareResource
    gap_window_days: int = 7
    gap_limit: int = 3
    daily_at: str = "18:30"
    first_day: str = "0001-01-01"
    fetch_workers: int = 4
    _opened: MarketService | None = PrivateAttr(default=None)

    def open(self) -> MarketService:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> MarketService:
        ledger, market = self.ledger.open(KINDS), catalogue()
        return MarketService.assemble(
            catalogue=market,
            lake=self.lake.open(all_tables(market), views()),
            ledger=ledger,
            rules=Rules(
                window_days=self.gap_window_days,
                limit=self.gap_limit,
                daily_at=time.fromisoformat(self.daily_at),
                first_day=date.fromisoformat(self.first_day),
                configuration=self.tushare.fingerprint(),
            ),
            connect=lambda: self.tushare.connect(ledger),
            workers=self.fetch_workers,
        )
