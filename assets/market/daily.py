"""The fetched daily tables: one asset per catalogue row. A new daily endpoint needs no code here."""

from collections.abc import Sequence
from datetime import date

import dagster as dg

from assets.market.pools import TUSHARE
from assets.market.recording import Recorder, check_specs
from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from assets.policies.retries import ListedRetryPolicy
from domain.market.catalogue import Catalogue, Endpoint
from services.market.fetch import fetch_days
from services.market.passes import ONLY, ONLY_NEEDED, Pass
from services.market.resource import MarketResource

GROUP = "market"


def daily_assets(
    catalogue: Catalogue, days: dg.PartitionsDefinition, waits: Sequence[float]
) -> list[dg.AssetsDefinition]:
    return [_daily_asset(catalogue, endpoint, days, waits) for endpoint in catalogue.daily]


def _daily_asset(
    catalogue: Catalogue, endpoint: Endpoint, days: dg.PartitionsDefinition, waits: Sequence[float]
) -> dg.AssetsDefinition:
    @dg.asset(
        **asset_arguments(endpoint.table, GROUP, {"tushare", "iceberg"}),
        deps=_deps(catalogue, endpoint),
        partitions_def=days,
        backfill_policy=dg.BackfillPolicy.single_run(),
        retry_policy=ListedRetryPolicy(waits),
        pool=TUSHARE,
        check_specs=check_specs(endpoint),
    )
    def fetched(context: dg.AssetExecutionContext, warehouse: MarketResource) -> dg.MaterializeResult:
        record, this = Recorder(context, endpoint.table, checked=True), this_pass(context, waits)
        wanted = [date.fromisoformat(k) for k in context.partition_keys]
        with classified(this.final):
            market = warehouse.open()
            fetch_days(market, endpoint, wanted, this, record)
        return record.result(market.recent_rows(endpoint.table.name))

    return fetched


def this_pass(context: dg.AssetExecutionContext, waits: Sequence[float] = ()) -> Pass:
    return Pass(
        context.run_id,
        context.retry_number,
        waits,
        only_needed=context.run.tags.get(ONLY) == ONLY_NEEDED,
    )


def _deps(catalogue: Catalogue, endpoint: Endpoint) -> list[dg.AssetDep]:
    """The calendar says which days are open; list and suspensions say how many rows a day must have."""
    deps = [
        dg.AssetDep(asset_key(catalogue.calendar.table), partition_mapping=dg.AllPartitionMapping()),
        dg.AssetDep(asset_key(catalogue.stocks.table)),
    ]
    if endpoint.expected == "listed_less_suspended":
        deps.append(dg.AssetDep(dg.AssetKey(["market", "suspensions"])))
    return deps
