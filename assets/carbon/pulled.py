"""What applications beside us hold, as an asset: a partition is read whole when it changed there."""

from collections.abc import Iterator

import dagster as dg

from assets.policies.definition import tableless
from assets.policies.failure import classified
from assets.policies.tags import DISPATCH
from domain.carbon.jobs import PULLED
from services.carbon.pull import Read, pull_entries
from services.carbon.resource import CarbonResource

PULLED_KEY = dg.AssetKey(["carbon", PULLED])


def pulled_entries(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """It writes no table: what is read becomes an upload of its place, and entries are made of uploads."""

    @dg.multi_asset(
        name=PULLED,
        specs=[
            tableless(
                PULLED_KEY,
                "Entries of applications beside us: edited by people, or counted by systems.",
                "json",
                "category_year",
                partitions,
            )
        ],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def made(context: dg.AssetExecutionContext, office: CarbonResource) -> Iterator[dg.MaterializeResult]:
        def tell(partition: str, read: Read) -> None:
            context.log_event(dg.AssetMaterialization(PULLED_KEY, partition=partition, metadata=_told(read)))
            refused = f", {read.refused} refused" if read.refused else ""
            context.log.info("%s of %s: %d entries%s", partition, read.place, read.entries, refused)

        with classified():
            carbon = office.open()
            asked = [str(key) for key in context.partition_keys]
            wanted = carbon.sent(context.run.tags.get(DISPATCH), PULLED, asked)
            pull_entries(carbon, wanted, context.run_id, tell)
        yield from ()

    return made


def _told(read: Read) -> dict[str, dg.MetadataValue]:
    return {
        "dagster/partition_row_count": dg.MetadataValue.int(read.entries),
        "place": dg.MetadataValue.text(read.place),
        "version": dg.MetadataValue.text(read.version),
        "refused": dg.MetadataValue.int(read.refused),
        "upload": dg.MetadataValue.int(read.upload),
    }
