"""The market's tables as assets. A new daily endpoint is a row of the catalogue and needs no code here."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial

import dagster as dg

from assets.market.checks import DailyChecks
from assets.market.pools import TUSHARE
from assets.policies.definition import asset_key
from assets.policies.table_asset import UseCase, table_asset
from domain.market.catalogue import Catalogue, Endpoint
from domain.market.derived import ADJUSTED_FROM
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.market.trading import SHANGHAI
from domain.shared.table import Table
from services.market.derive import derive_adjusted, derive_coverage, derive_revisions
from services.market.fetch import fetch_days
from services.market.references import fetch_calendar, fetch_stocks
from services.market.service import MarketService

FETCHED = {"tushare", "iceberg"}
DERIVED = {"duckdb", "iceberg"}
WEEKENDS = "0 0 * * 0,6"


def weekdays(start: date) -> dg.DailyPartitionsDefinition:
    """Every weekday from `start` to today in Shanghai. `end_offset` makes today a partition at once.

    Whether a weekday is a trading day is data, never a definition.
    """
    return dg.DailyPartitionsDefinition(
        start_date=start.isoformat(), timezone=SHANGHAI.key, exclusions=[WEEKENDS], end_offset=1
    )


def reference_assets(
    catalogue: Catalogue, years: dg.PartitionsDefinition, waits: Sequence[float]
) -> list[dg.AssetsDefinition]:
    """The trading calendar, a year a partition, and the list of all stocks."""
    calendar, stocks = [catalogue.calendar.table], [catalogue.stocks.table]
    return [
        table_asset(calendar, fetch_calendar, kinds=FETCHED, partitions=years, waits=waits, pool=TUSHARE),
        table_asset(stocks, fetch_stocks, kinds=FETCHED, waits=waits, pool=TUSHARE),
    ]


def daily_assets(
    catalogue: Catalogue, days: dg.PartitionsDefinition, waits: Sequence[float]
) -> list[dg.AssetsDefinition]:
    """The fetched daily tables, one asset per catalogue row."""
    return [
        table_asset(
            [endpoint.table],
            partial(fetch_days, endpoint=endpoint),
            kinds=FETCHED,
            deps=_deps(catalogue, endpoint),
            partitions=days,
            waits=waits,
            pool=TUSHARE,
            checks=DailyChecks(endpoint),
            recent=_recent,
        )
        for endpoint in catalogue.daily
    ]


def _deps(catalogue: Catalogue, endpoint: Endpoint) -> list[dg.AssetDep]:
    """The calendar says which days are open; list and suspensions say how many rows a day must have."""
    deps = [_all_of(catalogue.calendar.table), dg.AssetDep(asset_key(catalogue.stocks.table))]
    if endpoint.expected == "listed_less_suspended":
        deps.append(dg.AssetDep(dg.AssetKey(["market", "suspensions"])))
    return deps


def derived_assets(catalogue: Catalogue, days: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    """Adjusted prices, coverage and revisions."""
    fetched = [dg.AssetDep(asset_key(e.table)) for e in catalogue.daily]
    adjusted_from = [dg.AssetDep(dg.AssetKey(["market", name])) for name in ADJUSTED_FROM]

    def derived(table: Table, work: UseCase, deps: Sequence[dg.AssetDep]) -> dg.AssetsDefinition:
        rules = [f"sql/{table.table}.sql"]
        return table_asset(
            [table], work, kinds=DERIVED, deps=deps, partitions=days, recent=_recent, rules=rules
        )

    return [
        derived(ADJUSTED_DAILY, derive_adjusted, adjusted_from),
        derived(COVERAGE, derive_coverage, [*fetched, dg.AssetDep(asset_key(catalogue.stocks.table))]),
        derived(REVISIONS, derive_revisions, fetched),
    ]


def _all_of(table: Table) -> dg.AssetDep:
    return dg.AssetDep(asset_key(table), partition_mapping=dg.AllPartitionMapping())


def _recent(market: MarketService, table: str) -> Mapping[str, int]:
    return market.recent_rows(table)
