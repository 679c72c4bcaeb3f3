"""Who writes next: waiting writers are served in their order, whatever a busy one would like."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
from filelock import FileLock, Timeout

from resources.lake.error import LakeBusy
from resources.lake.locks import QUEUE, FileLocks


def test_who_waits_is_served_before_who_comes_back(tmp_path: Path) -> None:
    locks, served, first_may_go = FileLocks(tmp_path), [], Event()

    def busy() -> None:
        with locks.lease("prices"):
            served.append("busy")
            first_may_go.wait(10)
        with locks.lease("prices"):  # at once: nobody else had the time to look
            served.append("busy again")

    def patient(name: str) -> None:
        with locks.lease("prices"):
            served.append(name)
            time.sleep(0.02)

    threads = [Thread(target=busy)]
    threads[0].start()
    _until(lambda: served == ["busy"])
    for place in range(1, QUEUE):
        threads.append(Thread(target=patient, args=(f"waiting {place}",)))
        threads[-1].start()
        _until(lambda rung=place: _is_held(tmp_path / f"prices.queue-{rung}.lock"))
    first_may_go.set()
    for thread in threads:
        thread.join(20)
    assert served == ["busy", *(f"waiting {place}" for place in range(1, QUEUE)), "busy again"]


def test_waiting_ends_and_leaves_the_queue(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)
    with (
        locks.lease("prices"),
        pytest.raises(LakeBusy, match=r"prices: not free within 0 s"),
        FileLocks(tmp_path, wait_seconds=0.1).lease("prices"),
    ):
        pytest.fail("two writers at once")
    assert not any(_is_held(path) for path in tmp_path.glob("*.lock"))


def _is_held(path: Path) -> bool:
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


def _until(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.005)
