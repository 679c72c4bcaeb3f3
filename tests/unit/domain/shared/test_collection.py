from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

from domain.shared.collection import collected_rarely


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_collector__inside_and_after__runs_rarely_then_as_usual(usual: tuple[int, int, int]) -> None:
    with collected_rarely():
        assert gc.isenabled()
        assert gc.get_threshold()[0] > 100 * usual[0]
    assert gc.get_threshold() == usual


def test_the_last_of_overlapping_threads_gives_it_back(usual: tuple[int, int, int]) -> None:
    both_inside, seen_by_last = Barrier(2), []
    first_out = Barrier(2)

    def first() -> None:
        with collected_rarely():
            both_inside.wait(5)
        first_out.wait(5)

    def last() -> None:
        with collected_rarely():
            both_inside.wait(5)
            first_out.wait(5)
            seen_by_last.append(gc.get_threshold())

    threads = [Thread(target=first), Thread(target=last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen_by_last[0] != usual
    assert gc.get_threshold() == usual
