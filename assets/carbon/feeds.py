"""The assets of what applications hold: a partition is read whole when it changed there."""

from collections.abc import Iterator

import dagster as dg

from assets.policies.definition import tableless
from assets.policies.failure import classified
from assets.policies.tags import DISPATCH
from domain.carbon.feeds import FEED_TABLES, FeedKind
from services.carbon.feed_uploads import ReadScope
from services.carbon.feeds import read_feeds
from services.carbon.resource import CarbonResource

_DESCRIPTIONS: dict[FeedKind, str] = {
    "units": "Organisational units that other applications keep.",
    "factors": "Emission factors that other applications keep.",
    "entries": "Entries of other applications: edited by people, or counted by systems.",
}


def feed_key(kind: FeedKind) -> dg.AssetKey:
    return dg.AssetKey(["carbon", FEED_TABLES[kind]])


def feed_asset(kind: FeedKind, partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """It writes no table: what is read becomes an upload, and tables are made of uploads."""
    key, table = feed_key(kind), FEED_TABLES[kind]

    @dg.multi_asset(
        name=table,
        specs=[
            tableless(
                key,
                _DESCRIPTIONS[kind],
                "json",
                "year" if kind == "units" else "category_year",
                partitions,
            )
        ],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def made(
        context: dg.AssetExecutionContext, carbon_service: CarbonResource
    ) -> Iterator[dg.MaterializeResult]:
        def report(partition: str, read: ReadScope) -> None:
            context.log_event(dg.AssetMaterialization(key, partition=partition, metadata=_metadata(read)))
            refused = f", {read.refused} refused" if read.refused else ""
            context.log.info("%s of %s: %d %s%s", partition, read.scope, read.rows, kind, refused)

        with classified():
            carbon = carbon_service.open()
            asked = [str(key) for key in context.partition_keys]
            wanted = carbon.sent(context.run.tags.get(DISPATCH), table, asked)
            read_feeds(carbon, table, wanted, context.run_id, report)
        yield from ()

    return made


def _metadata(read: ReadScope) -> dict[str, dg.MetadataValue]:
    return {
        "dagster/partition_row_count": dg.MetadataValue.int(read.rows),
        "scope": dg.MetadataValue.text(read.scope),
        "version": dg.MetadataValue.text(read.version),
        "refused": dg.MetadataValue.int(read.refused),
        "upload": dg.MetadataValue.int(read.upload),
    }
