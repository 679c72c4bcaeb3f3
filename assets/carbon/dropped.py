"""What lies in the drop folder, as an asset: a run reads the files that a look saw come to rest."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from assets.policies.definition import tableless
from assets.policies.failure import classified
from assets.policies.tags import DISPATCH
from domain.carbon.dropped import shown
from domain.carbon.jobs import DROPPED, FILE_INGEST
from resources.ledger.schema import WAITING
from services.carbon.drop import Dropped, take_dropped
from services.carbon.resource import CarbonResource

DROPPED_KEY = dg.AssetKey(["carbon", DROPPED])


def dropped_files() -> dg.AssetsDefinition:
    """It writes no table: a file becomes an upload. A run that no look sent for reads all that waits."""

    @dg.multi_asset(
        name=DROPPED,
        specs=[tableless(DROPPED_KEY, "Files that somebody put into the drop folder.", "file", "none")],
    )
    def made(context: dg.AssetExecutionContext, office: CarbonResource) -> Iterator[dg.MaterializeResult]:
        def tell(done: Dropped) -> None:
            if done.outcome == "taken":
                context.log_event(dg.AssetMaterialization(DROPPED_KEY, metadata={"file": shown(done.place)}))
            context.log.info("%s: %s %s", shown(done.place), done.outcome, done.why)

        with classified():
            carbon = office.open()
            dispatch = context.run.tags.get(DISPATCH)
            rows = carbon.ledger.sent(dispatch) if dispatch else carbon.ledger.find(FILE_INGEST, limit=None)
            waiting = [row for row in rows if row.status in WAITING]
            take_dropped(carbon, Path(office.drop), waiting, context.run_id, tell)
        yield from ()

    return made
