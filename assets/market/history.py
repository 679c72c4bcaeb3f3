"""The weekly look over the whole history: older gaps are reported here, and backfilled on request."""

from datetime import date

import dagster as dg
import pyarrow as pa

from assets.market.daily import GROUP
from assets.market.market import Market
from assets.market.warehouse import MarketWarehouse
from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from domain.market.catalogue import Catalogue
from domain.market.observed import Observed
from domain.market.plan import window
from domain.market.reckoning import history_gaps
from domain.market.tables import HISTORY_GAPS
from domain.shared.table import ALL


def history_asset(catalogue: Catalogue) -> dg.AssetsDefinition:
    @dg.asset(
        **asset_arguments(HISTORY_GAPS, GROUP, {"duckdb", "iceberg"}),
        deps=[
            dg.AssetDep(asset_key(e.table), partition_mapping=dg.AllPartitionMapping())
            for e in catalogue.daily
        ],
    )
    def history(warehouse: MarketWarehouse) -> dg.MaterializeResult:
        with classified():
            gaps = look_back(warehouse.open())
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": gaps.num_rows,
                "days": len(set(gaps["trade_date"].to_pylist())),
                "look": dg.MetadataValue.text("perennial market backfill --gaps"),
            }
        )

    return history


def look_back(market: Market) -> pa.Table:
    """Find the gaps between the first day the warehouse has and the gap window; keep them in the lake."""
    gaps = find_gaps(market)
    market.lake.replace(HISTORY_GAPS.name, ALL, gaps, allow_empty=True)
    return gaps


def find_gaps(market: Market) -> pa.Table:
    calendar = market.calendar()
    near = window(Observed(calendar, {}), market.clock(), market.rules)
    first = market.lake.sql("SELECT min(trade_date) AS first FROM market.normalized_daily")["first"][
        0
    ].as_py()
    days = [d for d in calendar.between(first, near[0]) if d < near[0]] if first and near else []
    if not days:
        return HISTORY_GAPS.schema.empty_table()
    counted = market.lake.sql(
        " UNION ALL ".join(
            f"SELECT '{e.name}' AS table_name, trade_date, count(*) AS n FROM {e.table.name} GROUP BY ALL"
            for e in market.catalogue.daily
        )
    )
    return history_gaps(
        market.catalogue, days, counted, market.stocks(), _all_suspensions(market), _explained(market)
    )


def _all_suspensions(market: Market) -> pa.Table:
    return market.lake.sql(
        "SELECT trade_date, ts_code, suspend_timing, suspend_type FROM market.suspensions "
        "WHERE suspend_type = 'S' AND suspend_timing IS NULL"
    )


def _explained(market: Market) -> list[tuple[str, date]]:
    """Days whose thinness the source has confirmed, and days where an empty answer was an answer."""
    facts = market.provenance.facts([e.table.name for e in market.catalogue.daily])
    empty = {e.table.name for e in market.catalogue.daily if e.may_be_empty}
    return [
        (name.split(".", 1)[1], date.fromisoformat(partition))
        for (name, partition), fact in facts.items()
        if (fact.seen_count >= 2 and fact.detail.get("status") == "partial")
        or (name in empty and fact.rows == 0)
    ]
