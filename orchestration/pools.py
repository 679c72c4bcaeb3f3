"""Concurrency pools: what the instance should allow, and how far it is from that.

Limits live in Dagster's storage, not in `dagster.yaml`, so someone has to put them there: before the
daemon starts, because the default limit is not enforced in a pool's first pass of the queue. An instance may
be shared: pools that are not declared here belong to somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster import DagsterInstance


@dataclass(frozen=True, order=True)
class Drift:
    """One pool whose limit is not what it should be. `actual` None: it has none."""

    pool: str
    desired: int
    actual: int | None

    def __str__(self) -> str:
        if self.actual is None:
            return f"pool {self.pool} should have the limit {self.desired} but has none of its own"
        return f"pool {self.pool} should have the limit {self.desired} but has {self.actual}"


def drift(instance: DagsterInstance, desired: Mapping[str, int]) -> list[Drift]:
    """Every difference between `desired` and the instance, by pool."""
    # A pool that ran before anyone set it carries the default limit: that is not a decision.
    actual = {p.name: p.limit for p in instance.event_log_storage.get_pool_limits() if not p.from_default}
    return [
        Drift(pool, limit, actual.get(pool))
        for pool, limit in sorted(desired.items())
        if actual.get(pool) != limit
    ]


def ensure_pools(instance: DagsterInstance, desired: Mapping[str, int]) -> None:
    """Give each pool its limit that has none. A limit that somebody set is somebody's decision."""
    missing = {d.pool: d.desired for d in drift(instance, desired) if d.actual is None}
    apply_pools(instance, missing)


def apply_pools(instance: DagsterInstance, desired: Mapping[str, int]) -> list[Drift]:
    """Make these pools what `desired` says; returns what was different. Applying twice changes nothing."""
    from sqlalchemy.exc import IntegrityError

    found = drift(instance, desired)
    for _ in desired:
        try:
            _apply(instance, drift(instance, desired))
        except IntegrityError:
            continue  # somebody else has just made the row of a pool: then it is there, maybe as it should be
        return found
    _apply(instance, drift(instance, desired))
    return found


def _apply(instance: DagsterInstance, found: Sequence[Drift]) -> None:
    for difference in found:
        instance.event_log_storage.set_concurrency_slots(difference.pool, difference.desired)
