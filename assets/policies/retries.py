"""Retries inside a run: explicit short waits. Long waits belong to the ledger, where nothing sleeps."""

import sys
from collections.abc import Sequence
from typing import Self

import dagster as dg


class ListedRetryPolicy(dg.RetryPolicy):
    """Waits as listed, one after another, instead of Dagster's uncapped exponential."""

    waits: tuple[float, ...]

    def __new__(cls, seconds: Sequence[float]) -> Self:
        policy = super().__new__(cls, max_retries=len(seconds), delay=seconds[0] if seconds else None)
        policy.waits = tuple(seconds)
        return policy

    def calculate_delay(self, attempt_num: int) -> float:
        # Dagster asks its policy also while it handles an interrupt, and would try the step again: a run
        # somebody ends, by Ctrl-C or in the UI, has to end.
        error = sys.exception()
        if isinstance(error, BaseException) and not isinstance(error, Exception):
            raise error
        return self.waits[min(attempt_num, len(self.waits)) - 1]
