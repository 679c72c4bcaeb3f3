"""The derived tables as assets: adjusted prices, coverage and revisions."""

from collections.abc import Callable, Sequence
from datetime import date

import dagster as dg

from assets.market.daily import GROUP, this_pass
from assets.market.recording import Recorder
from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from domain.market.catalogue import Catalogue
from domain.market.derived import ADJUSTED_FROM
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.shared.table import Table
from services.market.derive import derive_adjusted, derive_coverage, derive_revisions
from services.market.passes import Pass, Report
from services.market.resource import MarketResource
from services.market.service import MarketService

Derive = Callable[[MarketService, Sequence[date], Pass, Report], None]


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
    def derived(context: dg.AssetExecutionContext, warehouse: MarketResource) -> dg.MaterializeResult:
        record = Recorder(context, table)
        wanted = [date.fromisoformat(k) for k in context.partition_keys]
        with classified():
            market = warehouse.open()
            derive(market, wanted, this_pass(context), record)
        return record.result(market.recent_rows(table.name))

    return derived
