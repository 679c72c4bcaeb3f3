"""`heal` and `--wait`: carbon's passes and runs in this process, until nothing is left to do."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestration.cli.output import say
from orchestration.cli.runner import Runner, runner
from orchestration.settings import Settings

if TYPE_CHECKING:
    from domain.carbon.plan import Plan
    from domain.shared.health import Finding
    from services.carbon.service import CarbonService


@dataclass(frozen=True)
class Ended:
    """How pipelines ended. `failed`: of each that has not come to its end, why. `others`: what is unhealthy,
    and not theirs."""

    failed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        return not self.failed


def drive(settings: Settings, carbon: CarbonService) -> bool:
    """Whether all is healthy afterwards; what is not is printed."""
    with runner(settings) as run:
        return drive_with(run, carbon)


def drive_with(run: Runner, carbon: CarbonService) -> bool:
    """The same with a runner that is open already."""
    _, unhealthy = _driven(run, carbon)
    for finding in unhealthy:
        say(_line(finding))
    return not unhealthy


def drive_pipelines(settings: Settings, carbon: CarbonService, names: Collection[str]) -> Ended:
    """The same, and how these pipelines ended. Other findings are notes, and no failure of theirs."""
    from services.carbon.pipelines import unended

    with runner(settings) as run:
        plan, unhealthy = _driven(run, carbon)
    if not unhealthy:
        return Ended()
    failed = unended(carbon, names)
    mine = _keys(carbon, plan, failed)
    for finding in unhealthy:
        say(_line(finding) if finding.subject in mine else f"note: {_line(finding)}")
    for why in failed.values():
        say(f"failed: {why}")
    others = tuple(_line(finding) for finding in unhealthy if finding.subject not in mine)
    return Ended(tuple(failed.values()), others)


def _keys(carbon: CarbonService, plan: Plan, names: Collection[str]) -> set[str]:
    """What these pipelines have done, and what is still to be done for them."""
    done = {row.key for rows in carbon.ledger.pipelines.members(names).values() for row in rows}
    return done | {v.key for v in plan.verdicts if not set(names).isdisjoint(v.pipelines)}


def drive_inbox(settings: Settings, carbon: CarbonService) -> None:
    """Import the files in the inbox, once two passes found them complete."""
    from domain.carbon.jobs import FILE_INGEST, INBOX_FILES
    from sensors.carbon.inbox import run_tags
    from services import inbox
    from services.carbon.inbox import open_inbox
    from services.run_until_idle import dispatch_again

    folder = open_inbox(carbon.inbox_folder)
    before = {path: file.stamp for path, file in folder.scan().items()}
    if not before:
        return
    say(f"files in the inbox: {len(before)}; {inbox.PASS_SECONDS:.0f} s to see whether they are complete")
    time.sleep(inbox.PASS_SECONDS)
    with runner(settings) as run:
        run.sweep(carbon.ledger)
        dispatch_again(carbon.ledger, (FILE_INGEST,), run)
        unfinished = run.unfinished().dispatches
        for dispatch in inbox.poll(folder, carbon.ledger, before, unfinished).dispatches:
            end = run.run([INBOX_FILES], domain="carbon", tags=run_tags(dispatch.id))
            say(f"{end.word} {INBOX_FILES}: {len(dispatch.rows)} of them; each has a report beside it")
            for error in end.errors:
                say(f"        {error}")


def _driven(run: Runner, carbon: CarbonService) -> tuple[Plan, list[Finding]]:
    """The last plan, and what is unhealthy when nothing is left to do."""
    from services.carbon.findings import find_problems
    from services.carbon.reconcile import CarbonReconciler
    from services.run_until_idle import run_until_idle

    observed = run_until_idle(CarbonReconciler(carbon), run, wait_for_others=True)
    found = find_problems(carbon, observed.seen)
    return observed.plan, [f for f in found if f.health in ("broken", "stale", "healing")]


def _line(found: Finding) -> str:
    return f"{found.health}: {found.subject}: {found.reason.splitlines()[0]}"
