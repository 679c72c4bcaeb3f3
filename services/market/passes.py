"""The words a run of the market speaks in: its passes, what happened to each day, why one did not work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from domain.market.completeness import Judgement
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.table import ABSENT, Version

ONLY = "perennial/only"
ONLY_NEEDED = "needed"
"""The run tag, and its value, that set `Pass.only_needed`."""
progress = logging.getLogger("perennial.progress")


@dataclass(frozen=True)
class Pass:
    """One pass of a run: the first, or a repetition by the op's retry policy."""

    run_id: str
    retry: int = 0
    waits: Sequence[float] = ()
    only_needed: bool = False
    """Leave alone what is whole: a backfill over days of which some are there."""

    @property
    def final(self) -> bool:
        return self.retry >= len(self.waits)

    @property
    def wait(self) -> float:
        return 0.0 if self.final else self.waits[self.retry]


@dataclass(frozen=True)
class DayReport:
    """What happened to one day, for events and metadata."""

    day: date
    outcome: str
    version: Version = ABSENT
    judgement: Judgement | None = None
    snapshot_id: int | None = None
    seconds: float = 0.0
    retries: int = 0
    announced: bool = False
    """Whether an earlier pass of the same run already logged its event."""
    why: str = ""
    """Of a refused day."""
    explained: bool = False
    """Partial, and the source has said the same before."""


Report = Callable[[Sequence[DayReport]], None]
"""Takes what happened to some days, all at once."""


class CalendarMissing(TransientResourceError):
    """Without the calendar nobody knows which days are due; the plan fetches it first."""

    reason_code = "calendar_missing"
    retry_in_run = False


class PartlyDone(PerennialError):
    """Some days of a run were put off or given up. The ledger knows each and asks again."""

    reason_code = "partly_done"
