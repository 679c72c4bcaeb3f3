"""The references as assets: the trading calendar, a year a partition, and the list of all stocks."""

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from assets.market.daily import GROUP, this_pass
from assets.market.pools import TUSHARE
from assets.policies.definition import asset_arguments
from assets.policies.failure import classified
from assets.policies.partitions import YEARS
from assets.policies.retries import ListedRetryPolicy
from domain.market.catalogue import Catalogue
from services.market.passes import DayReport
from services.market.reference_fetch import fetch_calendar, fetch_stocks
from services.market.resource import MarketResource


def reference_assets(catalogue: Catalogue, waits: Sequence[float]) -> list[dg.AssetsDefinition]:
    @dg.asset(
        **asset_arguments(catalogue.calendar.table, GROUP, {"tushare", "iceberg"}),
        partitions_def=YEARS,
        retry_policy=ListedRetryPolicy(waits),
        pool=TUSHARE,
    )
    def trade_cal(context: dg.AssetExecutionContext, warehouse: MarketResource) -> dg.MaterializeResult:
        this, tell = this_pass(context, waits), _Teller(context, "dagster/partition_row_count")
        with classified(this.final):
            report = fetch_calendar(warehouse.open(), int(context.partition_key), this, tell)
        return dg.MaterializeResult(metadata=tell.metadata(report))

    @dg.asset(
        **asset_arguments(catalogue.stocks.table, GROUP, {"tushare", "iceberg"}),
        retry_policy=ListedRetryPolicy(waits),
        pool=TUSHARE,
    )
    def stock_basic(context: dg.AssetExecutionContext, warehouse: MarketResource) -> dg.MaterializeResult:
        this, tell = this_pass(context, waits), _Teller(context, "dagster/row_count")
        with classified(this.final):
            report = fetch_stocks(warehouse.open(), this, tell)
        return dg.MaterializeResult(metadata=tell.metadata(report))

    return [trade_cal, stock_basic]


@dataclass(frozen=True)
class _Teller:
    """Tells a commit as it happens; a run killed right after it must not leave it unseen."""

    context: dg.AssetExecutionContext
    row_count: str

    def __call__(self, report: DayReport) -> None:
        self.context.log_event(
            dg.AssetMaterialization(
                self.context.asset_key,
                partition=self.context.partition_key if self.context.has_partition_key else None,
                metadata=self.metadata(report),
            )
        )

    def metadata(self, report: DayReport) -> dict[str, dg.MetadataValue]:
        return {
            self.row_count: dg.MetadataValue.int(report.version.rows),
            "content": dg.MetadataValue.text(str(report.version)),
            "seconds": dg.MetadataValue.float(round(report.seconds, 3)),
            "retries": dg.MetadataValue.int(report.retries),
        }
