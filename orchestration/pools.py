"""Concurrency pools: the limits that the instance should have, and how it differs from them.

Limits are in Dagster's storage, not in `dagster.yaml`. They are set before the daemon starts, because the
default limit is not enforced in a pool's first pass of the queue. Undeclared pools are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster import DagsterInstance


@dataclass(frozen=True, order=True)
class Drift:
    """A pool whose limit is not the desired one; `actual` is None if it has none."""

    pool: str
    desired: int
    actual: int | None

    def __str__(self) -> str:
        has = "none of its own" if self.actual is None else self.actual
        return f"pool {self.pool} should have the limit {self.desired} but has {has}"


def drift(instance: DagsterInstance, desired: Mapping[str, int]) -> list[Drift]:
    """Return every difference between `desired` and the instance, by pool."""
    # A pool that ran before anybody set its limit has the default limit.
    actual = {p.name: p.limit for p in instance.event_log_storage.get_pool_limits() if not p.from_default}
    return [
        Drift(pool, limit, actual.get(pool))
        for pool, limit in sorted(desired.items())
        if actual.get(pool) != limit
    ]


def apply_pools(
    instance: DagsterInstance, desired: Mapping[str, int], *, only_new: bool = False
) -> list[Drift]:
    """Set the limits of these pools; returns what was different. `only_new` keeps limits that are set."""
    from sqlalchemy.exc import IntegrityError

    found = [one for one in drift(instance, desired) if not only_new or one.actual is None]
    for difference in found:
        with suppress(IntegrityError):  # another process has just set the first limit of this pool
            instance.event_log_storage.set_concurrency_slots(difference.pool, difference.desired)
    return found
