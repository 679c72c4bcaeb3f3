"""The carbon tables as assets. Each function is one writer of its tables; what it does stands elsewhere."""

from collections.abc import Callable, Iterator, Sequence

import dagster as dg

from assets.carbon.dropped import DROPPED_KEY, dropped_files
from assets.carbon.feed_entries import FEED_ENTRIES_KEY, feed_entries
from assets.carbon.recording import Recorder
from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from assets.policies.partitions import YEARS
from assets.policies.tags import DISPATCH
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
from services.carbon.intake import take_in_entries, take_in_factors, take_in_units
from services.carbon.making import Tell
from services.carbon.resource import CarbonResource
from services.carbon.service import CarbonService

GROUP = "carbon"
KINDS = {"duckdb", "iceberg"}

Work = Callable[[CarbonService, Sequence[str], str, Tell], None]


def carbon_assets(catalogue: Catalogue) -> list[dg.AssetsDefinition]:
    by_type = _by_year("data_entry_type", list(catalogue.types))
    by_module = _by_year("module", [m.name for m in catalogue.modules])
    return [
        dropped_files(),
        _asset([UNITS], [], YEARS, take_in_units, beside=[DROPPED_KEY]),
        _asset([FACTORS, FACTOR_VERSIONS], [], YEARS, take_in_factors, beside=[DROPPED_KEY]),
        feed_entries(by_type),
        _asset([DATA_ENTRIES], [UNITS], by_type, take_in_entries, beside=[DROPPED_KEY, FEED_ENTRIES_KEY]),
        _asset([EMISSIONS], [DATA_ENTRIES, FACTORS], by_type, calculate_emissions),
        _asset([REPORT_MODULES], [EMISSIONS], by_module, sum_modules),
        _asset([REPORTS], [EMISSIONS, UNITS], YEARS, sum_reports),
    ]


def _by_year(dimension: str, names: Sequence[str]) -> dg.MultiPartitionsDefinition:
    return dg.MultiPartitionsDefinition(
        {dimension: dg.StaticPartitionsDefinition(sorted(names)), "year": YEARS}
    )


def _asset(
    tables: Sequence[Table],
    upstream: Sequence[Table],
    partitions: dg.PartitionsDefinition,
    work: Work,
    beside: Sequence[dg.AssetKey] = (),
) -> dg.AssetsDefinition:
    """One writer of these tables. It tells each partition it makes by itself, and no other: a run may span a
    rectangle of partitions of which only some are due."""

    @dg.multi_asset(
        name=tables[0].table,
        specs=[_spec(table, upstream, partitions, beside if table is tables[0] else ()) for table in tables],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def made(context: dg.AssetExecutionContext, office: CarbonResource) -> Iterator[dg.MaterializeResult]:
        with classified():
            carbon = office.open()
            asked = [str(key) for key in context.partition_keys]
            wanted = carbon.sent(context.run.tags.get(DISPATCH), tables[0].table, asked)
            work(carbon, wanted, context.run_id, Recorder(context))
        yield from ()

    return made


def _spec(
    table: Table,
    upstream: Sequence[Table],
    partitions: dg.PartitionsDefinition,
    beside: Sequence[dg.AssetKey],
) -> dg.AssetSpec:
    """`beside`: what it is made from that is no table; it is cut like this one, or not at all."""
    arguments = asset_arguments(table, GROUP, KINDS)
    return dg.AssetSpec(
        **arguments,
        deps=[
            *(dg.AssetDep(asset_key(t), partition_mapping=_mapping(t, partitions)) for t in upstream),
            *beside,
        ],
        skippable=True,
        partitions_def=partitions,
    )


def _mapping(upstream: Table, partitions: dg.PartitionsDefinition) -> dg.PartitionMapping | None:
    """Years meet years; where one side has types or modules besides, all of the other belong to it."""
    by_year_only = upstream.partition_kind == "year"
    if by_year_only and isinstance(partitions, dg.MultiPartitionsDefinition):
        return dg.MultiToSingleDimensionPartitionMapping("year")
    if not by_year_only and not isinstance(partitions, dg.MultiPartitionsDefinition):
        return dg.MultiToSingleDimensionPartitionMapping("year")
    if upstream is EMISSIONS:
        return dg.MultiPartitionMapping(
            {
                "year": dg.DimensionPartitionMapping("year", dg.IdentityPartitionMapping()),
                "data_entry_type": dg.DimensionPartitionMapping("module", dg.AllPartitionMapping()),
            }
        )
    return None
