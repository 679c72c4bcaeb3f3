"""`heal` and `--wait`: carbon's passes and runs in this process, until nothing is left to do."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from orchestration.cli.output import say
from orchestration.cli.runner import Runner, runner
from orchestration.settings import Settings

if TYPE_CHECKING:
    from domain.shared.health import Finding
    from services.carbon.service import CarbonService


def drive(settings: Settings, carbon: CarbonService) -> bool:
    """Reconcile until nothing is left to do; print what is unhealthy and return whether nothing is."""
    with runner(settings) as run:
        return not drive_with(run, carbon)


def drive_with(run: Runner, carbon: CarbonService) -> list[Finding]:
    """The same with an open runner; return what is unhealthy."""
    from domain.shared.finding_groups import lines
    from services.carbon.findings import find_problems
    from services.carbon.reconcile import CarbonReconciler
    from services.run_until_idle import run_until_idle

    observed = run_until_idle(CarbonReconciler(carbon), run)
    found = find_problems(carbon, observed.seen)
    unhealthy = [f for f in found if f.health in ("broken", "stale", "healing")]
    for line in lines(unhealthy):
        say(line)
    return unhealthy


def drive_pipelines(settings: Settings, carbon: CarbonService, names: Collection[str]) -> list[str]:
    """The same; return why pipelines of these are not in the report. Other findings are no failure of
    theirs."""
    from services.carbon.pipelines import find_pipelines

    with runner(settings) as run:
        if not drive_with(run, carbon):
            return []
    failures = [one.failure for one in find_pipelines(carbon, names) if one.failure]
    for why in failures:
        say(f"failed: {why}")
    return failures


def drive_inbox(settings: Settings, carbon: CarbonService) -> None:
    """Import the files in the inbox, once two passes found them complete."""
    from domain.carbon.jobs import FILE_INGEST, INBOX_FILES
    from sensors.carbon.inbox import run_tags
    from services import inbox
    from services.carbon.inbox import open_inbox
    from services.run_until_idle import WaitingWork

    folder = open_inbox(carbon.inbox_folder)
    before = {path: file.stamp for path, file in folder.scan().items()}
    if not before:
        return
    say(f"files in the inbox: {len(before)}; {inbox.PASS_SECONDS:.0f} s to see whether they are complete")
    time.sleep(inbox.PASS_SECONDS)
    with runner(settings) as run:
        run.sweep(carbon.ledger)
        unfinished = run.unfinished()
        WaitingWork(carbon.ledger, (FILE_INGEST,), run).make_due(unfinished, hurry=True)
        for dispatch in inbox.poll(folder, carbon.ledger, before, unfinished.dispatches).dispatches:
            end = run.run([INBOX_FILES], namespace="carbon", tags=run_tags(dispatch))
            say(f"{end.word} {INBOX_FILES}: {len(dispatch.rows)} of them; each has a report beside it")
            for error in end.errors:
                say(f"        {error}")
