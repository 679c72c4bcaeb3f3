from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from domain.shared.parallel import in_parallel, one_ahead


def test_in_parallel__pieces_end_in_any_order__answers_keep_their_order() -> None:
    def slowest_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0)
        return number * 10

    assert in_parallel(slowest_first, iter(range(5))) == [0, 10, 20, 30, 40]
    assert in_parallel(slowest_first, []) == []


def test_in_parallel__several_pieces_fail__raises_the_error_of_the_first() -> None:
    second_failed = threading.Event()

    def fails(number: int) -> None:
        if number == 1:
            second_failed.set()
        second_failed.wait(10)
        raise ValueError(f"piece {number}")

    with pytest.raises(ValueError, match="piece 0"):
        in_parallel(fails, range(2))


def test_one_ahead__first_piece_in_use__makes_the_second_and_no_more() -> None:
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


def test_one_ahead__block_is_left_early__stops_the_thread() -> None:
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


def test_one_ahead__piece_fails__raises_in_its_turn() -> None:
    def pieces() -> Iterator[int]:
        yield 0
        raise ValueError("piece 1")

    with one_ahead(pieces()) as coming:
        assert next(coming) == 0
        with pytest.raises(ValueError, match="piece 1"):
            next(coming)
