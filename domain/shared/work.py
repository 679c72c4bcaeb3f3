"""Work as values: what a kind of work may do when it fails, and what is requested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.shared.backoff import Backoff
from domain.shared.error import PerennialError

UNCLASSIFIED = Backoff(base=timedelta(seconds=5), factor=5, cap=timedelta(seconds=300), max_attempts=3)
"""For exceptions nobody classified: few attempts, then a person decides."""

RECURRENCE = Backoff(base=timedelta(seconds=30), factor=2, cap=timedelta(hours=1))
"""For work that ended well and yet is requested again at once for the very same reason."""


Gate = Callable[[Any, Collection[str]], Mapping[str, PerennialError]]
"""Called with a connection and keys, in the transaction that claims them: the keys that nobody may work on
now, each with the error that says why."""


@dataclass(frozen=True)
class Kind:
    """One kind of work, e.g. `market.fill`.

    `transient` spaces the attempts after a TransientResourceError; its `max_attempts` None means the
    work is never given up. `recurrence_backoff` spaces consecutive generations of a key that each ended well
    and yet left the plan wanting more: the first recurrence is free, the tenth is not. `gate` is a domain's
    veto: keys it names are not claimed, and their work ends as skipped. Work of a `pulled` kind is leased by
    runs that take whatever is due; all other runs are dispatched for named keys.
    """

    name: str
    transient: Backoff
    unclassified: Backoff = UNCLASSIFIED
    recurrence_backoff: Backoff = RECURRENCE
    gate: Gate | None = None
    pulled: bool = False


@dataclass(frozen=True)
class WorkRequest:
    """This `key` of this `kind` is to be done, for the reason that the fingerprint stands for."""

    kind: str
    key: str
    fingerprint: str
    reason_code: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    tenant: str = "default"
    priority: int = 0
    not_before: datetime | None = None
    parent_id: int | None = None
    once: bool = False
    """Whether the key is an event, done once for all; until retention deletes its row."""
    pipelines: tuple[str, ...] = ()
    """The pipelines that this work belongs to; one work item may complete several."""
