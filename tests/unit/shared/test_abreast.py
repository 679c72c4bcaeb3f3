from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from domain.shared.parallel import WORKERS, in_parallel, one_ahead


def test_answers_come_in_the_order_of_their_pieces_whatever_is_done_first() -> None:
    def slowest_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0)
        return number * 10

    assert in_parallel(slowest_first, iter(range(5))) == [0, 10, 20, 30, 40]
    assert in_parallel(slowest_first, []) == []


def test_as_many_are_at_work_as_there_are_workers() -> None:
    meeting = threading.Barrier(WORKERS, timeout=10)

    assert len(in_parallel(lambda _: meeting.wait(), range(WORKERS))) == WORKERS


def test_a_single_piece_needs_no_thread() -> None:
    assert in_parallel(lambda _: threading.current_thread(), [1]) == [threading.current_thread()]


def test_of_several_failures_the_first_piece_tells_whoever_fails_first() -> None:
    second_failed = threading.Event()

    def fails(number: int) -> None:
        if number == 1:
            second_failed.set()
        second_failed.wait(10)
        raise ValueError(f"piece {number}")

    with pytest.raises(ValueError, match="piece 0"):
        in_parallel(fails, range(2))


def test_one_piece_is_made_while_the_one_before_is_worked_on_and_no_more() -> None:
    made: list[int] = []
    second = threading.Event()

    def pieces() -> Iterator[int]:
        for number in range(4):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    with one_ahead(pieces()) as coming:
        assert next(coming) == 0
        assert second.wait(10)
        assert made == [0, 1]
        assert list(coming) == [1, 2, 3]


def test_whoever_leaves_early_leaves_nothing_at_work() -> None:
    begun, left = threading.Event(), threading.Event()
    done: list[int] = []

    def pieces() -> Iterator[int]:
        yield 0
        begun.set()
        left.wait(10)
        done.append(1)
        yield 1
        done.append(2)
        yield 2

    def leave() -> None:
        with one_ahead(pieces()) as coming:
            next(coming)
            begun.wait(10)
            threading.Timer(0.05, left.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert done == [1]


def test_a_piece_that_cannot_be_made_fails_in_its_turn() -> None:
    def pieces() -> Iterator[int]:
        yield 0
        raise ValueError("piece 1")

    with one_ahead(pieces()) as coming:
        assert next(coming) == 0
        with pytest.raises(ValueError, match="piece 1"):
            next(coming)
