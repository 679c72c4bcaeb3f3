from __future__ import annotations

import threading
import time

import pytest

from domain.shared.abreast import WORKERS, abreast


def test_answers_come_in_the_order_of_their_pieces_whatever_is_done_first() -> None:
    def slowest_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0)
        return number * 10

    assert abreast(slowest_first, iter(range(5))) == [0, 10, 20, 30, 40]
    assert abreast(slowest_first, []) == []


def test_as_many_are_at_work_as_there_are_workers() -> None:
    meeting = threading.Barrier(WORKERS, timeout=10)

    assert len(abreast(lambda _: meeting.wait(), range(WORKERS))) == WORKERS


def test_a_single_piece_needs_no_thread() -> None:
    assert abreast(lambda _: threading.current_thread(), [1]) == [threading.current_thread()]


def test_of_several_failures_the_first_piece_tells_whoever_fails_first() -> None:
    second_failed = threading.Event()

    def fails(number: int) -> None:
        if number == 1:
            second_failed.set()
        second_failed.wait(10)
        raise ValueError(f"piece {number}")

    with pytest.raises(ValueError, match="piece 0"):
        abreast(fails, range(2))
