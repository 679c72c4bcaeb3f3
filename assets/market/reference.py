"""The references as assets: the trading calendar, a year a partition, and the list of all stocks."""

from collections.abc import Sequence

import dagster as dg

from assets.market.daily import GROUP, this_pass
from assets.market.passes import DayReport
from assets.market.reference_fetch import fetch_calendar, fetch_stocks
from assets.market.warehouse import MarketWarehouse
from assets.policies.definition import asset_arguments
from assets.policies.failure import classified
from assets.policies.partitions import YEARS
from assets.policies.pools import TUSHARE
from assets.policies.retries import ListedRetryPolicy
from domain.market.catalogue import Catalogue


def reference_assets(catalogue: Catalogue, waits: Sequence[float]) -> list[dg.AssetsDefinition]:
    @dg.asset(
        **asset_arguments(catalogue.calendar.table, GROUP, {"tushare", "iceberg"}),
        partitions_def=YEARS,
        retry_policy=ListedRetryPolicy(waits),
        pool=TUSHARE,
    )
    def trade_cal(context: dg.AssetExecutionContext, warehouse: MarketWarehouse) -> dg.MaterializeResult:
        this = this_pass(context, waits)
        with classified(this.final):
            report = fetch_calendar(warehouse.open(), int(context.partition_key), this)
        return dg.MaterializeResult(metadata=_metadata(report, "dagster/partition_row_count"))

    @dg.asset(
        **asset_arguments(catalogue.stocks.table, GROUP, {"tushare", "iceberg"}),
        retry_policy=ListedRetryPolicy(waits),
        pool=TUSHARE,
    )
    def stock_basic(context: dg.AssetExecutionContext, warehouse: MarketWarehouse) -> dg.MaterializeResult:
        this = this_pass(context, waits)
        with classified(this.final):
            report = fetch_stocks(warehouse.open(), this)
        return dg.MaterializeResult(metadata=_metadata(report, "dagster/row_count"))

    return [trade_cal, stock_basic]


def _metadata(report: DayReport, row_count: str) -> dict[str, dg.MetadataValue]:
    return {
        row_count: dg.MetadataValue.int(report.version.rows),
        "content": dg.MetadataValue.text(str(report.version)),
        "seconds": dg.MetadataValue.float(round(report.seconds, 3)),
        "retries": dg.MetadataValue.int(report.retries),
    }
