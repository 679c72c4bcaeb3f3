"""`heal` and `--wait`: carbon's looks and runs in this process, until nothing is left to do.

Others may be at the same. What they have in their hands is waited for; what the dead had is taken back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from domain.shared.error import PerennialError
from orchestration.cli.output import say
from orchestration.domains.carbon import open_carbon
from orchestration.settings import Settings

if TYPE_CHECKING:
    from domain.shared.health import Finding
    from orchestration.cli.runner import Runner
    from resources.ledger.model import Work
    from services.carbon.reconcile import Start
    from services.carbon.service import CarbonService

ROUNDS = 10_000
"""Runs no honest drive reaches."""
NAMED = 6
"""Partitions of a run that are told by name."""
GLANCE = 0.25
"""Seconds between two glances at what others do."""
GLANCES = 20
"""After so many it is looked again, whatever they showed: a lease may have run out."""
PATIENCE = 900.0
"""Seconds without any change after which nobody is waited for: a queue may have lost its daemon."""
BEGINS_WITHIN = timedelta(seconds=10)
"""A run begins as soon as it was sent for. If it does not, whoever sent for it has died."""


def drive(settings: Settings, carbon: CarbonService) -> bool:
    """Whether all is well afterwards. What is not, has been told."""
    from orchestration.cli.runner import runner

    with runner(settings) as run:
        return drive_with(run, settings, carbon)


@dataclass(frozen=True)
class Ended:
    """How chains ended. `failed`: of each that has not come to its end, why. `others`: what is not well, and
    is not theirs."""

    failed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        return not self.failed


def drive_chains(settings: Settings, carbon: CarbonService, names: Collection[str]) -> Ended:
    """The same, and how these chains ended. Whoever brought them is told of other troubles, and has not
    failed for them."""
    from orchestration.cli.runner import runner
    from services.carbon.pipelines import unended

    with runner(settings) as run:
        ill = _driven(run, settings, carbon)
    if not ill:
        return Ended()
    failed = unended(carbon, names)
    mine = _keys(carbon, failed)
    others = tuple(_line(one) for one in ill if one.subject not in mine)
    for found in ill:
        say(_line(found) if found.subject in mine else f"note: {_line(found)}")
    for why in failed.values():
        say(f"failed: {why}")
    return Ended(tuple(failed.values()), others)


def _keys(carbon: CarbonService, names: Collection[str]) -> set[str]:
    """What these chains have done, and what is still to be done for them."""
    done = {row.key for rows in carbon.ledger.pipelines.members(names).values() for row in rows}
    return done | {v.key for v in carbon.plan().verdicts if not set(names).isdisjoint(v.pipelines)}


def drive_inbox(settings: Settings, carbon: CarbonService) -> None:
    """Import the files in the inbox, once two passes found them complete."""
    from domain.carbon.jobs import FILE_INGEST, INBOX_FILES
    from orchestration.cli.runner import runner, take_back
    from resources.ledger.attention import attention
    from sensors.carbon.inbox import run_tags
    from sensors.unfinished import unfinished_dispatches
    from services import inbox
    from services.carbon.inbox import open_inbox

    folder = open_inbox(carbon.inbox_folder)
    before = {path: file.stamp for path, file in folder.scan().items()}
    if not before:
        return
    say(f"files in the inbox: {len(before)}; {inbox.PASS_SECONDS:.0f} s to see whether they are complete")
    time.sleep(inbox.PASS_SECONDS)
    with runner(settings) as run:
        take_back(carbon.ledger, run)
        _send_again(carbon, run, attention(carbon.ledger.engine, (FILE_INGEST,)))
        unfinished = unfinished_dispatches(run.instance)
        for dispatch in inbox.poll(folder, carbon.ledger, before, unfinished).dispatches:
            end = run.run([INBOX_FILES], domain="carbon", tags=run_tags(dispatch.id))
            said = "done   " if end.success else "failed "
            say(f"{said} {INBOX_FILES}: {len(dispatch.rows)} of them; each has a report beside it")
            for error in end.errors:
                say(f"        {error}")


def drive_with(
    run: Runner, settings: Settings, carbon: CarbonService, seen_by: Callable[[Start], None] = lambda _: None
) -> bool:
    """The same with a runner that is open already. `seen_by` is told of every run."""
    ill = _driven(run, settings, carbon, seen_by)
    for found in ill:
        say(_line(found))
    return not ill


def _driven(
    run: Runner, settings: Settings, carbon: CarbonService, seen_by: Callable[[Start], None] = lambda _: None
) -> list[Finding]:
    """What is not well when nothing is left to do."""
    from orchestration.cli.runner import take_back
    from sensors.unfinished import unfinished_dispatches
    from services.carbon.reconcile import reconcile

    left, changed = ROUNDS, time.monotonic()
    while left:
        take_back(carbon.ledger, run)
        _send_again(carbon, run, _rows(carbon))
        unfinished = unfinished_dispatches(run.instance)
        # One at a time: whoever else is here can do the next, and a death leaves little behind.
        seen = reconcile(carbon, unfinished, at_once=1)
        for start in seen.starts:
            _run(run, start)
            seen_by(start)
            left -= 1
        if seen.starts:
            changed = time.monotonic()
            continue
        rows = _rows(carbon)
        waits = seen.left or _in_other_hands(carbon, rows, unfinished)
        if not waits or time.monotonic() - changed > PATIENCE:
            return _ill(settings)
        if _changes(carbon, rows):
            changed = time.monotonic()
    raise PerennialError(f"{ROUNDS} runs and still more to do", reason_code="no_end")


def _run(run: Runner, start: Start) -> None:
    from sensors.carbon.recalculation import run_tags, written_with

    end = run.run(written_with(start.table), domain="carbon", tags=run_tags(start))
    count = len(start.partitions)
    what = ", ".join(start.partitions) if count <= NAMED else f"{count} partitions"
    say(f"{'done   ' if end.success else 'failed '} {start.table}: {what}")
    for error in end.errors:
        say(f"        {error}")


def _rows(carbon: CarbonService) -> list[Work]:
    from domain.carbon.jobs import KINDS
    from resources.ledger.attention import attention

    return attention(carbon.ledger.engine, tuple(kind.name for kind in KINDS))


def _send_again(carbon: CarbonService, run: Runner, rows: Iterable[Work]) -> None:
    """Work whose run has died before it took it. It would be sent again by itself, minutes later: a person
    who asks now is not to wait for that."""
    import dagster as dg

    from assets.policies.tags import DISPATCH

    now = carbon.clock()
    for row in rows:
        if row.status == "queued" and row.dispatch_id is not None and row.not_before > now:
            runs = run.instance.get_runs(dg.RunsFilter(tags={DISPATCH: row.dispatch_id}))
            if runs and all(one.is_finished for one in runs):
                carbon.ledger.retry(row.id)


def _in_other_hands(carbon: CarbonService, rows: Iterable[Work], unfinished: Collection[str]) -> bool:
    """Whether anything is running, or on its way to a run, that is not ours: we run nothing now."""
    just_now = carbon.clock() - BEGINS_WITHIN
    return any(
        row.status == "running"
        or (
            row.status == "queued"
            and row.dispatch_id is not None
            and (row.dispatch_id in unfinished or row.updated_at > just_now)
        )
        for row in rows
    )


def _changes(carbon: CarbonService, rows: Iterable[Work]) -> bool:
    """Wait for a change of these rows, some glances long; whether there was one."""
    before = _marks(rows)
    for _ in range(GLANCES):
        time.sleep(GLANCE)
        if _marks(_rows(carbon)) != before:
            return True
    return False


def _marks(rows: Iterable[Work]) -> list[tuple[int, str, int]]:
    """What a heartbeat leaves as it is."""
    return [(row.id, row.status, row.fence) for row in rows]


def _ill(settings: Settings) -> list[Finding]:
    from services.carbon.findings import find_problems

    return [f for f in find_problems(open_carbon(settings)) if f.health in ("broken", "stale", "healing")]


def _line(found: Finding) -> str:
    return f"{found.health}: {found.subject}: {found.reason.splitlines()[0]}"
