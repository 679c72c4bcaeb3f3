"""The asset of entries that applications hold: a partition is read whole when it changed there."""

from collections.abc import Iterator

import dagster as dg

from assets.policies.definition import tableless
from assets.policies.failure import classified
from assets.policies.tags import DISPATCH
from domain.carbon.jobs import FEED_ENTRIES
from services.carbon.feeds import ReadScope, read_feed_entries
from services.carbon.resource import CarbonResource

FEED_ENTRIES_KEY = dg.AssetKey(["carbon", FEED_ENTRIES])


def feed_entries(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """It writes no table: what is read becomes an upload, and entries are made of uploads."""

    @dg.multi_asset(
        name=FEED_ENTRIES,
        specs=[
            tableless(
                FEED_ENTRIES_KEY,
                "Entries of other applications: edited by people, or counted by systems.",
                "json",
                "category_year",
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
            event = dg.AssetMaterialization(FEED_ENTRIES_KEY, partition=partition, metadata=_metadata(read))
            context.log_event(event)
            refused = f", {read.refused} refused" if read.refused else ""
            context.log.info("%s of %s: %d entries%s", partition, read.scope, read.entries, refused)

        with classified():
            carbon = carbon_service.open()
            asked = [str(key) for key in context.partition_keys]
            wanted = carbon.sent(context.run.tags.get(DISPATCH), FEED_ENTRIES, asked)
            read_feed_entries(carbon, wanted, context.run_id, report)
        yield from ()

    return made


def _metadata(read: ReadScope) -> dict[str, dg.MetadataValue]:
    return {
        "dagster/partition_row_count": dg.MetadataValue.int(read.entries),
        "scope": dg.MetadataValue.text(read.scope),
        "version": dg.MetadataValue.text(read.version),
        "refused": dg.MetadataValue.int(read.refused),
        "upload": dg.MetadataValue.int(read.upload),
    }
