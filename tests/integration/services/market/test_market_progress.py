"""`market backfill` on a terminal: the bar moves, waits for the rate are shown, Ctrl-C ends it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.integration.services.market.market_app import MarketApp

SECONDS = 120
COMMANDS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What a terminal obeys instead of showing it."""


class Terminal:
    """A process on a terminal of its own, and what it wrote there."""

    def __init__(self, *arguments: str) -> None:
        self._ours, its = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "orchestration.cli", *arguments],
            stdin=its,
            stdout=its,
            stderr=its,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
            preexec_fn=self._take_terminal,  # noqa: PLW1509 - a terminal that sends signals
            start_new_session=True,
        )
        os.close(its)
        self.written = ""

    @staticmethod
    def _take_terminal() -> None:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read_until(self, pattern: str) -> re.Match[str]:
        deadline = time.monotonic() + SECONDS
        while (found := re.search(pattern, COMMANDS.sub("", self.written))) is None:
            assert time.monotonic() < deadline, self.written[-2000:]
            assert self._read(), f"ended: {self.written[-2000:]}"
        return found

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 1)[0]:
            return True
        try:
            text = os.read(self._ours, 65536)
        except OSError:  # its end is closed
            return False
        self.written += text.decode()
        return bool(text)

    def interrupt(self) -> int:
        """Press Ctrl-C, which every process of the terminal gets; the exit code."""
        os.write(self._ours, b"\x03")
        code = self.process.wait(SECONDS)
        while select.select([self._ours], [], [], 2)[0] and self._read():
            pass
        return code

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(SECONDS)
        os.close(self._ours)


@pytest.mark.slow
def test_backfill__on_a_terminal__moves_its_bar_and_counts_the_wait_down(app: MarketApp) -> None:
    """With four calls a minute: the days of one month, and the bar moves before the month is stored."""
    app.set(TUSHARE_CALLS_PER_MINUTE="4")
    app.let_time_run()
    terminal = Terminal(
        "market", "backfill", "--table", "normalized_adj_factor", "--from", "2024-08-05", "--to", "2024-08-23"
    )
    try:
        terminal.read_until(r"normalized_adj_factor .* 0/15 ")
        terminal.read_until(r"normalized_adj_factor .* [1-4]/15 ")
        first = terminal.read_until(r"adj_factor: no call is free, going on in (\d+) s")
        terminal.read_until(rf"going on in (?!{first[1]} s)\d+ s")
        assert terminal.interrupt() == 130
    finally:
        terminal.kill()
    assert "Traceback" not in terminal.written, terminal.written[-2000:]
    assert terminal.written.rindex("\x1b[?25h") > terminal.written.rindex("\x1b[?25l"), "the cursor is back"
