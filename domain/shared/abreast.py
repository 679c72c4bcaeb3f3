"""Work on the pieces of many rows, two at a time: numpy and Arrow let others run while they count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

WORKERS = 2
"""As many as DuckDB is given here."""

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


def abreast(work: Callable[[Piece], Answer], pieces: Iterable[Piece]) -> list[Answer]:
    """What the work makes of each piece, in their order. Who asks must not mind which is done first; the
    first piece that failed, in their order, fails all."""
    waiting = list(pieces)
    if len(waiting) < 2:
        return [work(piece) for piece in waiting]
    with ThreadPoolExecutor(WORKERS) as workers:
        return list(workers.map(work, waiting))
