"""Work on many rows, two pieces at a time: numpy, Arrow and DuckDB let others run while they count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

WORKERS = 2
"""As many as DuckDB is given here."""

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


def in_parallel(work: Callable[[Piece], Answer], pieces: Iterable[Piece]) -> list[Answer]:
    """Return the results in the order of the pieces. The first failed piece, in that order, fails all."""
    waiting = list(pieces)
    if len(waiting) < 2:
        return [work(piece) for piece in waiting]
    with ThreadPoolExecutor(WORKERS) as workers:
        return list(workers.map(work, waiting))


@contextmanager
def one_ahead(pieces: Iterator[Piece]) -> Iterator[Iterator[Piece]]:
    """The pieces; while one is in use the next is made, and no more than that one.

    Left early, it waits for the piece that is being made, and makes no other.
    """

    def pieces_ahead() -> Iterator[Piece]:
        coming = maker.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = maker.submit(next, pieces, None)
            yield piece

    with ThreadPoolExecutor(1) as maker:
        yield pieces_ahead()
