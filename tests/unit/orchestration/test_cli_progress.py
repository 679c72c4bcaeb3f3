"""Progress where stderr is no terminal: plain lines, and few."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from orchestration.cli.progress import EVERY, PROGRESS, WAIT, Lines, progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


def record(lines: Lines, name: str, text: str, *args: object) -> None:
    lines.handle(logging.LogRecord(name, logging.INFO, "", 0, text, args, None))


def test_lines__short_run__says_nothing(written: io.StringIO) -> None:
    clock = Clock()
    lines = Lines(written, clock)
    for done in (0, 6):
        record(lines, PROGRESS, "%s: %d of %d partitions", "prices", done, 6)
    assert written.getvalue() == ""


def test_lines__long_run__says_one_line_in_ten_seconds_without_control_characters(
    written: io.StringIO,
) -> None:
    clock = Clock()
    lines = Lines(written, clock)
    for done in range(1, 31):
        clock.now += EVERY / 10
        record(lines, PROGRESS, "%s: %d of %d partitions", "prices", done, 30)
    said = written.getvalue().splitlines()
    assert said == [
        "prices: 10 of 30 partitions",
        "prices: 20 of 30 partitions",
        "prices: 30 of 30 partitions",
    ]


def test_lines__many_threads_wait_for_one_minute__say_it_once_with_the_time_left(
    written: io.StringIO,
) -> None:
    clock = Clock()
    lines = Lines(written, clock)
    for _ in range(4):
        record(lines, WAIT, "%s: no call is free, going on in %.0f s", "daily", 41.2)
    clock.now += 42
    record(lines, WAIT, "%s: no call is free, going on in %.0f s", "daily", 59.0)
    said = written.getvalue().splitlines()
    assert [line.rpartition("going on in ")[2] for line in said] == ["41 s", "59 s"]


def test_progress__left__gives_the_logger_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    log = logging.getLogger(PROGRESS)
    before = list(log.handlers)
    with pytest.raises(KeyError), progress():
        {}["nothing"]
    assert (log.handlers, log.propagate) == (before, True)
