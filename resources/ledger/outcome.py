"""What an error means for the work it ended: its kind, its short reason, and a text fit for a row.

Adapters classified already; only types are read here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from domain.shared.error import InvalidInput, PerennialError, PermanentRunnerError, TransientResourceError
from domain.shared.printable import printable

ErrorKind = Literal["transient", "permanent", "invalid_input", "unclassified", "abandoned"]
Verb = Literal["complete", "skip", "defer", "fail", "release", "repeat"]

ERROR_LIMIT = 2_000
"""Characters of an error a row keeps; the run's log has the rest."""
_SPACES = "\n\t\u00a0\u3000"
"""Not printable by themselves, and yet part of what people and sources write."""


@dataclass(frozen=True, slots=True)
class Cause:
    """An error as a row keeps it."""

    kind: ErrorKind
    reason_code: str
    error: str
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended. With `not_before` the caller knows when to try again, and no maximum applies.

    `repeat`: the next pass of the same run is about to try again.
    """

    verb: Verb
    reason_code: str = ""
    cause: Cause | None = None
    not_before: datetime | None = None


def shortened(text: str) -> str:
    """Return the text without empty lines, printable, and cut at `ERROR_LIMIT` characters."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    whole = printable("\n".join(lines), keep=_SPACES) or "no message"
    return whole if len(whole) <= ERROR_LIMIT else whole[: ERROR_LIMIT - 1] + "…"


def cause_of(error: BaseException | str, *, otherwise: ErrorKind = "transient") -> Cause:
    """The cause that an error stands for. A plain text has no type: `otherwise` gives the kind.

    A framework may wrap what an adapter classified (`raise Failure(...) from error`), so the first error of
    ours is taken from the explicit chain of causes.
    """
    if isinstance(error, str):
        return Cause(kind=otherwise, reason_code=otherwise, error=shortened(error))
    ours = _first_of_ours(error)
    if ours is None:
        text = f"{type(error).__name__}: {error}"
        return Cause(kind="unclassified", reason_code="unclassified", error=shortened(text))
    kind: ErrorKind = "unclassified"
    retry_after = None
    if isinstance(ours, TransientResourceError):
        kind, retry_after = "transient", ours.retry_after
    elif isinstance(ours, PermanentRunnerError):
        kind = "permanent"
    elif isinstance(ours, InvalidInput):
        kind = "invalid_input"
    text = f"{ours.message}\n{ours.remedy}"  # an empty line is dropped
    return Cause(kind, ours.reason_code, shortened(text), retry_after)


def _first_of_ours(error: BaseException) -> PerennialError | None:
    link: BaseException | None = error
    for _ in range(20):
        if link is None or isinstance(link, PerennialError):
            return link
        link = link.__cause__
    return None


def outcome_of(error: BaseException) -> Outcome:
    """How work ends whose body raised: released if interrupted, failed if hopeless, else deferred."""
    if not isinstance(error, Exception):
        return Outcome("release", reason_code="interrupted")
    cause = cause_of(error)
    verb: Verb = "fail" if cause.kind in ("permanent", "invalid_input") else "defer"
    return Outcome(verb, reason_code=cause.reason_code, cause=cause)
