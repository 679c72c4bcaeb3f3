"""The derived tables as assets: adjusted prices, coverage and revisions."""

from collections.abc import Callable, Sequence
from datetime import date

import dagster as dg

from assets.market.daily import GROUP, this_pass
from assets.market.derive import derive_adjusted, derive_coverage, derive_revisions
from assets.market.fetch import DayReport, Pass
from assets.market.market import Market
from assets.market.recording import day_metadata
from assets.market.warehouse import MarketWarehouse
from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from assets.policies.plot import bars
from domain.market.catalogue import Catalogue
from domain.market.derived import ADJUSTED_FROM
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.shared.table import Table

Derive = Callable[[Market, Sequence[date], Pass, Callable[[DayReport], None]], None]


def derived_assets(catalogue: Catalogue, days: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    fetched = [asset_key(e.table) for e in catalogue.daily]
    return [
        _derived(ADJUSTED_DAILY, [dg.AssetKey(["market", n]) for n in ADJUSTED_FROM], days, derive_adjusted),
        _derived(COVERAGE, [*fetched, asset_key(catalogue.stocks.table)], days, derive_coverage),
        _derived(REVISIONS, fetched, days, derive_revisions),
    ]


def _derived(
    table: Table, upstream: Sequence[dg.AssetKey], days: dg.PartitionsDefinition, derive: Derive
) -> dg.AssetsDefinition:
    @dg.asset(
        **asset_arguments(table, GROUP, {"duckdb", "iceberg"}),
        deps=upstream,
        partitions_def=days,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def derived(context: dg.AssetExecutionContext, warehouse: MarketWarehouse) -> dg.MaterializeResult:
        reports: list[DayReport] = []

        def record(report: DayReport) -> None:
            reports.append(report)
            metadata = day_metadata(report)
            if len(context.partition_keys) > 1:
                context.log_event(
                    dg.AssetMaterialization(asset_key(table), partition=str(report.day), metadata=metadata)
                )
            context.add_asset_metadata(metadata, partition_key=str(report.day))

        with classified():
            derive(
                warehouse.open(),
                [date.fromisoformat(k) for k in context.partition_keys],
                this_pass(context),
                record,
            )
        if told := [(str(r.day), float(r.version.rows)) for r in reports if r.outcome == "committed"]:
            context.add_asset_metadata({"plot": dg.MetadataValue.md(bars(told))}, partition_key=max(told)[0])
        return dg.MaterializeResult()

    return derived
