"""Ctrl-C is given again until the work has ended, and not a moment longer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from orchestration.cli import interrupt
from orchestration.cli.interrupt import insistent_interrupts


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Where tests run in the background of a shell, an interrupt is ignored from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "PATIENCE_SECONDS", 0.2)


def swallow_one() -> None:
    """As a finaliser does, whatever is raised inside it."""
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
    except KeyboardInterrupt:
        return
    pytest.fail("there was none to swallow")


def test_an_interrupt_that_was_lost_comes_again():
    def work_on() -> None:
        with insistent_interrupts():
            swallow_one()
            time.sleep(5)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work_on()
    assert time.monotonic() - began < 4


def test_none_comes_after_the_work_has_ended():
    with insistent_interrupts():
        swallow_one()
    time.sleep(0.5)


def test_without_a_signal_nothing_happens():
    with insistent_interrupts():
        time.sleep(0.5)
    assert signal.set_wakeup_fd(-1) == -1, "the descriptor is given back"
