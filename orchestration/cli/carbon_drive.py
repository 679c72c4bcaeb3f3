"""Runs whatever carbon has due in this process, look by look: what the daemon does, without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from domain.shared.error import PerennialError
from orchestration.cli.output import say

if TYPE_CHECKING:
    from assets.carbon.carbon import Carbon
    from orchestration.cli.runner import RunEnd, Runner
    from sensors.carbon.look import Start

ROUNDS = 1_000
"""A bound no honest drive reaches: a chain has five steps."""
_NAMED = 6
"""Partitions of a run that are told by name."""


def drive_carbon(carbon: Carbon, run: Runner, seen_by: Callable[[Start], None] | None = None) -> bool:
    """Look and run until a look finds nothing that is due; whether all of it went well. `seen_by` is told of
    every run."""
    from sensors.carbon.look import look
    from sensors.carbon.recalculation import run_tags, written_with
    from sensors.unfinished import unfinished_dispatches

    well = True
    for _ in range(ROUNDS):
        seen = look(carbon, unfinished_dispatches(run.instance))
        if not seen.starts:
            return well and not any(v.due for v in carbon.plan().verdicts)
        for start in seen.starts:
            end = run.run(written_with(start.table), domain="carbon", tags=run_tags(start))
            _tell(start, end)
            well = well and end.success
            if seen_by is not None:
                seen_by(start)
    raise PerennialError(f"{ROUNDS} rounds and still more to do", reason_code="no_end")


def _tell(start: Start, end: RunEnd) -> None:
    count = len(start.partitions)
    what = ", ".join(start.partitions) if count <= _NAMED else f"{count} partitions"
    say(f"{'done   ' if end.success else 'failed '} {start.table}: {what}")
    for error in end.errors:
        say(f"        {error}")
