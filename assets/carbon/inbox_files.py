"""The asset of inbox files: a run imports the files that a pass found complete."""

from collections.abc import Iterator
from functools import partial

import dagster as dg

from assets.policies.definition import tableless
from assets.policies.failure import classified
from assets.policies.tags import DISPATCH
from domain.carbon.jobs import FILE_INGEST, INBOX_FILES
from domain.shared.work import WAITING
from services.carbon.inbox import import_file, open_inbox
from services.carbon.resource import CarbonResource
from services.inbox import FileOutcome, import_files, quoted

INBOX_FILES_KEY = dg.AssetKey(["carbon", INBOX_FILES])


def inbox_files() -> dg.AssetsDefinition:
    """It writes no table: a file becomes an upload. A run that nothing dispatched imports all that waits."""

    @dg.multi_asset(
        name=INBOX_FILES,
        specs=[tableless(INBOX_FILES_KEY, "Files that somebody put into the inbox.", "file", "none")],
    )
    def made(
        context: dg.AssetExecutionContext, carbon_service: CarbonResource
    ) -> Iterator[dg.MaterializeResult]:
        def report(path: str, outcome: FileOutcome) -> None:
            if outcome.accepted:
                metadata = {"file": quoted(path)}
                context.log_event(dg.AssetMaterialization(INBOX_FILES_KEY, metadata=metadata))
            context.log.info("%s: %s: %s", quoted(path), outcome.reason_code, outcome.report)

        with classified():
            carbon = carbon_service.open()
            dispatch = context.run.tags.get(DISPATCH)
            rows = carbon.ledger.sent(dispatch) if dispatch else carbon.ledger.find(FILE_INGEST, limit=None)
            waiting = [row for row in rows if row.status in WAITING]
            inbox = open_inbox(carbon.inbox_folder)
            import_files(inbox, carbon.ledger, waiting, context.run_id, partial(import_file, carbon), report)
        yield from ()

    return made
