"""The weekly look over the whole history, as an asset."""

import dagster as dg

from assets.market.daily import GROUP
from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from domain.market.catalogue import Catalogue
from domain.market.tables import HISTORY_GAPS
from services.market.history import look_back
from services.market.resource import MarketResource


def history_asset(catalogue: Catalogue) -> dg.AssetsDefinition:
    @dg.asset(
        **asset_arguments(HISTORY_GAPS, GROUP, {"duckdb", "iceberg"}),
        deps=[
            dg.AssetDep(asset_key(e.table), partition_mapping=dg.AllPartitionMapping())
            for e in catalogue.daily
        ],
    )
    def history(warehouse: MarketResource) -> dg.MaterializeResult:
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
