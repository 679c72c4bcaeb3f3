"""Companions of a round: threads that read or maintain a home as long as commands disturb it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from domain.shared.clock import machine_clock
from orchestration.domains.market import open_market
from tests.chaos.home import Home
from tests.chaos.rounds import Findings

Loop = Callable[[threading.Event], None]
"""Works until the event is set."""
EVERY_MONTH_CLOSED = "9999-12"
PAUSE = 1.0


@contextmanager
def companions(*loops: Loop) -> Iterator[None]:
    """Run each loop in a thread as long as the body lasts."""
    stop = threading.Event()
    threads = [threading.Thread(target=loop, args=(stop,)) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def complaining(found: Findings, what: str) -> Iterator[None]:
    """Turn any error of the body into a complaint; the round goes on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - any error
        found.complaints.append(f"{what} met {type(error).__name__}: {str(error)[:600]}")


def maintenance(home: Home, found: Findings, kept: timedelta, luck: random.Random) -> Loop:
    """Compact and expire every table as the nightly upkeep does, with `kept` in the place of days."""
    market = open_market(home.settings, write=True)

    def maintain(stop: threading.Event) -> None:
        while not stop.wait(luck.uniform(0, PAUSE)):
            with complaining(found, "maintenance"):
                for name in market.lake.tables:
                    done = market.lake.maintain(
                        name,
                        now=machine_clock(),
                        compact_before=EVERY_MONTH_CLOSED,
                        keep_snapshots=market.provenance.pinned_snapshots(name),
                        expire_after=kept,
                        orphan_age=kept,
                    )
                    found.count(expired=done.expired_snapshots, compacted=done.compacted_files)

    return maintain
