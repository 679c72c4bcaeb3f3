"""What the plan says of a partition. The rules are in `plan.py`, the kinds of work in `jobs.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from domain.carbon.jobs import KIND_OF, PRIORITY
from domain.shared.work import WorkRequest

State = Literal["healthy", "due", "waits", "locked"]
"""healthy  what it was made from is what is there
due      work
waits    it would be due, but what it is made from is about to change, or is not there
locked   it would be due, but its year is locked
"""


@dataclass(frozen=True)
class Verdict:
    """What the plan thinks of one partition of one table. `pipelines` are the chains that it concludes."""

    table: str
    partition: str
    state: State
    reason_code: str
    why: str
    fingerprint: str = ""
    pipelines: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.table}:{self.partition}"

    @property
    def kind(self) -> str:
        return KIND_OF[self.table]

    @property
    def year(self) -> int:
        return year_of(self.partition)

    @property
    def since(self) -> datetime | None:
        """Nobody notes when it became so; its work item has the time of the request."""
        return None

    @property
    def due(self) -> bool:
        return self.state == "due"

    def item(self) -> WorkRequest:
        return WorkRequest(
            kind=self.kind,
            key=self.key,
            fingerprint=self.fingerprint,
            reason_code=self.reason_code,
            priority=PRIORITY[self.kind],
            pipelines=self.pipelines,
        )


@dataclass(frozen=True)
class Plan:
    verdicts: tuple[Verdict, ...]

    @property
    def due(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.due)

    @property
    def unfinished_pipelines(self) -> frozenset[str]:
        """Chains that more is to come of, whether it is work already or not."""
        return frozenset(p for v in self.verdicts for p in v.pipelines)

    @property
    def locked_pipelines(self) -> Mapping[str, frozenset[int]]:
        """Chains of which all that is to come is kept from coming by a lock, with the locked years."""
        coming = {p for v in self.verdicts if v.state != "locked" for p in v.pipelines}
        found: dict[str, set[int]] = defaultdict(set)
        for verdict in self.verdicts:
            for name in set(verdict.pipelines).difference(coming):
                found[name].add(verdict.year)
        return {name: frozenset(years) for name, years in found.items()}


def year_of(partition: str) -> int:
    """Of `2025` and of `plane|2025`."""
    return int(partition.rsplit("|", 1)[-1])
