"""The plan as a value: one verdict for each partition, with the work that it requests.

The rules are in the domains' `plan.py`; here is what they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from domain.shared.hashing import digest
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT
from domain.shared.work import WorkRequest

State = Literal["healthy", "missing", "incomplete", "stale", "changed", "corrupt", "waiting", "unavailable"]
"""healthy      as it should be, or different for a known reason
missing      never made, or gone
incomplete   fewer rows than expected
stale        made from other inputs or rules than there are now, or due to be checked again
changed      its content is not what was recorded
corrupt      its data file is gone, or was read and does not decode
waiting      not due yet, or something else comes first
unavailable  its bytes cannot be read now

The first and the last two request no work; all others do.
"""
Wrong = tuple[State, str, str]
"""What is wrong with a partition: state, reason code, reason."""

UNAVAILABLE = "lake_unavailable"
"""The reason code of a partition that cannot be read now. It waits: its content may be intact."""
INPUT_MISSING = "input_missing"
"""The reason code of a partition that waits for another one."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one partition of one table."""

    table: str
    partition: str
    state: State
    reason_code: str = ""
    reason: str = ""
    request: WorkRequest | None = None
    since: datetime | None = None
    next_attempt: datetime | None = None
    """Set where the partition waits without a work item."""
    pipelines: tuple[str, ...] = ()
    """The pipelines that end with this partition."""

    @property
    def key(self) -> str:
        return f"{self.table}:{self.partition}"

    @property
    def due(self) -> bool:
        return self.request is not None

    @property
    def fingerprint(self) -> str:
        return self.request.fingerprint if self.request else ""

    @property
    def blocked(self) -> bool:
        """Whether it waits for bytes that cannot be read now, or for inputs that are not complete."""
        return self.reason_code in (UNAVAILABLE, INPUT_MISSING)


@dataclass(frozen=True)
class Plan:
    verdicts: tuple[Verdict, ...]

    @property
    def due(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.due)


def due(verdict: Verdict, kind: str, priority: int, *found: str) -> Verdict:
    """Return the verdict with a request for work. Its fingerprint covers the reason and what was found."""
    code = verdict.reason_code
    fingerprint = digest([code, *found])
    request = WorkRequest(
        kind, verdict.key, fingerprint, code, priority=priority, pipelines=verdict.pipelines
    )
    return replace(verdict, request=request)


def waiting(verdict: Verdict, reason: str, reason_code: str = "") -> Verdict:
    """Return a due verdict as one that waits."""
    code = reason_code or verdict.reason_code
    return replace(verdict, state="waiting", reason_code=code, reason=reason, request=None)


def waits_for(own: Iterable[PartitionState], sources: Mapping[str, PartitionState]) -> Wrong | None:
    """Return why a partition waits: it, or what it is made from, cannot be read now.

    The one place where plans take notice of an unavailable partition: it is neither healthy nor work, it is
    not overwritten, and nothing is made from it.
    """
    if why := next((state.version.unavailable for state in own if state.version.unavailable), ""):
        return "unavailable", UNAVAILABLE, why
    for name, state in sources.items():
        if state.version.unavailable:
            return "waiting", INPUT_MISSING, f"input {name} is unavailable: {state.version.unavailable}"
    return None


def fault(state: PartitionState) -> Wrong | None:
    """Return what is wrong with a readable partition, whatever its table."""
    version, recorded = state.version, state.recorded
    if version.corrupt:
        return "corrupt", "corrupt", "its data file is gone or does not decode"
    if state.never_made:
        return "missing", "missing", "never made"
    if recorded is None:
        return "changed", "unrecorded", f"{version.rows:,} rows that no run recorded"
    if version == ABSENT and recorded != ABSENT:
        return "missing", "missing", f"its {recorded.rows:,} rows are gone"
    if version != recorded:
        return "changed", "changed", f"its content ({version}) is not what was recorded ({recorded})"
    return None


def changed_inputs(state: PartitionState, inputs: Mapping[str, str]) -> list[str]:
    """Return the names of the inputs that are not those that the partition was made from."""
    return sorted(k for k in inputs.keys() | state.inputs.keys() if inputs.get(k) != state.inputs.get(k))


def outdated(changed: list[str]) -> Wrong:
    """Return the fault of a partition whose inputs changed."""
    named = f"input{'s' if len(changed) > 1 else ''} {', '.join(changed)}"
    return "stale", "inputs_changed", f"{named} changed since this partition was made"
