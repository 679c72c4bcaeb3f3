"""Who writes next: waiting writers are served in their order, and do not wait for ever."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest
from filelock import FileLock, Timeout

from resources.lake.error import LakeBusy
from resources.lake.locks import QUEUE, FileLocks


def test_lease__another_writer_waits__goes_to_it_before_the_last_holder(tmp_path: Path) -> None:
    locks, served, may_go = FileLocks(tmp_path), [], Event()

    def write(name: str, *again: str) -> None:
        for one in (name, *again):  # at once: nobody else has the time to poll
            with locks.lease("prices"):
                served.append(one)
                may_go.wait(10)

    threads = [Thread(target=write, args=("busy", "busy again")), Thread(target=write, args=("waiting",))]
    for thread, held in zip(threads, ("prices.lock", "prices.queue-1.lock"), strict=True):
        thread.start()
        while not _is_held(tmp_path / held):
            pass
    may_go.set()
    for thread in threads:
        thread.join(20)
    assert served == ["busy", "waiting", "busy again"]


def test_lease__waits_too_long__is_busy_and_leaves_the_queue(tmp_path: Path) -> None:
    with (
        FileLocks(tmp_path).lease("prices"),
        pytest.raises(LakeBusy, match=r"prices: not free within 0 s"),
        FileLocks(tmp_path, wait_seconds=0.1).lease("prices"),
    ):
        pytest.fail("two writers at once")
    assert len(list(tmp_path.glob("*.lock"))) == QUEUE + 1
    assert not any(_is_held(path) for path in tmp_path.glob("*.lock"))


def _is_held(path: Path) -> bool:
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
