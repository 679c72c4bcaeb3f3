"""The carbon tables as assets: each function is the one writer of its tables."""

from collections.abc import Sequence

import dagster as dg

from assets.carbon.feeds import feed_asset, feed_key
from assets.carbon.inbox_files import INBOX_FILES_KEY, inbox_files
from assets.policies.definition import asset_key
from assets.policies.table_asset import UseCase, table_asset
from domain.carbon.catalogue import Catalogue
from domain.carbon.tables import (
    DATA_ENTRIES,
    EMISSIONS,
    FACTOR_VERSIONS,
    FACTORS,
    REPORT_MODULES,
    REPORTS,
    UNITS,
)
from domain.shared.table import Table
from services.carbon.calculate import calculate_emissions, sum_modules, sum_reports
from services.carbon.intake import ingest_entries, ingest_factors, ingest_units

KINDS = {"duckdb", "iceberg"}


def carbon_assets(catalogue: Catalogue, years: dg.StaticPartitionsDefinition) -> list[dg.AssetsDefinition]:
    by_type = _by_year("data_entry_type", list(catalogue.types), years)
    by_module = _by_year("module", [m.name for m in catalogue.modules], years)
    return [
        inbox_files(),
        feed_asset("units", years),
        feed_asset("factors", by_type),
        feed_asset("entries", by_type),
        _asset([UNITS], [], years, ingest_units, other_upstream=[INBOX_FILES_KEY, feed_key("units")]),
        _asset(
            [FACTORS, FACTOR_VERSIONS],
            [],
            years,
            ingest_factors,
            other_upstream=[INBOX_FILES_KEY],
            other_deps=[dg.AssetDep(feed_key("factors"), partition_mapping=_year_of_both())],
            rules=["sql/factors.sql", "sql/factor_versions.sql"],
        ),
        _asset(
            [DATA_ENTRIES],
            [UNITS],
            by_type,
            ingest_entries,
            other_upstream=[INBOX_FILES_KEY, feed_key("entries")],
        ),
        _asset(
            [EMISSIONS], [DATA_ENTRIES, FACTORS], by_type, calculate_emissions, rules=["sql/emissions.sql"]
        ),
        _asset([REPORT_MODULES], [EMISSIONS], by_module, sum_modules, rules=["sql/report_modules.sql"]),
        _asset([REPORTS], [EMISSIONS, UNITS], years, sum_reports, rules=["sql/reports.sql"]),
    ]


def _by_year(
    dimension: str, names: Sequence[str], years: dg.StaticPartitionsDefinition
) -> dg.MultiPartitionsDefinition:
    return dg.MultiPartitionsDefinition(
        {dimension: dg.StaticPartitionsDefinition(sorted(names)), "year": years}
    )


def _asset(
    tables: Sequence[Table],
    upstream: Sequence[Table],
    partitions: dg.PartitionsDefinition,
    work: UseCase,
    other_upstream: Sequence[dg.AssetKey] = (),
    other_deps: Sequence[dg.AssetDep] = (),
    rules: Sequence[str] = (),
) -> dg.AssetsDefinition:
    """`other_upstream`: the assets that are no tables, with the same partitions or none; `other_deps`: those
    with others."""
    deps = [dg.AssetDep(asset_key(t), partition_mapping=_mapping(t, partitions)) for t in upstream]
    return table_asset(
        tables,
        work,
        kinds=KINDS,
        deps=[*deps, *map(dg.AssetDep, other_upstream), *other_deps],
        partitions=partitions,
        rules=rules,
    )


def _mapping(upstream: Table, partitions: dg.PartitionsDefinition) -> dg.PartitionMapping | None:
    """Years meet years; where one side has types or modules besides, all of the other belong to it."""
    by_year_only = upstream.partition_kind == "year"
    if by_year_only == isinstance(partitions, dg.MultiPartitionsDefinition):
        return _year_of_both()
    if upstream is EMISSIONS:
        return dg.MultiPartitionMapping(
            {
                "year": dg.DimensionPartitionMapping("year", dg.IdentityPartitionMapping()),
                "data_entry_type": dg.DimensionPartitionMapping("module", dg.AllPartitionMapping()),
            }
        )
    return None


def _year_of_both() -> dg.PartitionMapping:
    return dg.MultiToSingleDimensionPartitionMapping("year")
