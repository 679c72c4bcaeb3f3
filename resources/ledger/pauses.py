"""Which holds of this process wait for the next pass of their run, and when that wait is over.

Dagster does not sit out a retry: it does what else is ready in the run first, and the retry may then wait for
a slot of its pool. How long that takes nobody can tell, so a hold goes on to renew its lease until the next
pass takes its rows, or its run is over. With its process it ends as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from weakref import WeakSet

from sqlalchemy import Engine


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Pause:
    """A wait for the next pass. `end` stops what renews the lease of these rows."""

    engine: Engine
    run_id: str
    rows: frozenset[int]
    end: Callable[[], None]


# A hold that lost its rows stops by itself, and its pause is forgotten with it.
_begun: WeakSet[Pause] = WeakSet()
_turn = threading.Lock()


def begin(pause: Pause) -> Pause:
    with _turn:
        _begun.add(pause)
    return pause


def end_of_rows(engine: Engine, taken: Collection[int]) -> None:
    """These rows are in new hands. A pause of more than these rows sees for itself what it lost."""
    _end(lambda pause: pause.engine.url == engine.url and pause.rows <= set(taken))


def end_of_run(run_id: str) -> None:
    """The run is over: its next pass, if it had one, did not come as far as to its rows."""
    _end(lambda pause: pause.run_id == run_id)


def end_of_ledger(engine: Engine) -> None:
    _end(lambda pause: pause.engine is engine)


def _end(is_over: Callable[[Pause], bool]) -> None:
    with _turn:
        over = [pause for pause in _begun if is_over(pause)]
        _begun.difference_update(over)
    for pause in over:
        pause.end()
