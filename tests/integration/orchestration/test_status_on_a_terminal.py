"""`perennial status` on a terminal of 80 columns and 24 lines: colours, one screen, and looking again."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COLOUR = re.compile(r"\x1b\[(?:\d+;)*3\d")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Its ledger is no database: one finding, and quickly found."""
    (tmp_path / "ledger.db").write_bytes(b"this is no database" * 500)
    return tmp_path


def start(home: Path, *arguments: str, **environment: str) -> tuple[subprocess.Popen[bytes], int]:
    ours, its = pty.openpty()
    variables = {k: v for k, v in os.environ.items() if k != "NO_COLOR" and not k.startswith("PERENNIAL_")}
    variables |= {"PERENNIAL_HOME": str(home), "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    command = [sys.executable, "-m", "orchestration.cli", "status", *arguments]
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env={**variables, **environment})
    os.close(its)
    return process, ours


def read(terminal: int, until: int = sys.maxsize) -> str:
    """Return what is written to the end, or until so many answers were begun."""
    written = b""
    while written.count(b"all times in") < until:
        try:
            written += os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
    return written.decode()


@pytest.mark.parametrize("no_color", ["", "1"])
def test_status__on_a_terminal__has_colours_unless_they_are_unwanted(home: Path, no_color: str) -> None:
    process, terminal = start(home, **({"NO_COLOR": no_color} if no_color else {}))
    written = read(terminal)
    assert process.wait(60) == 1
    assert "ledger_corrupt" in written
    assert "restore this file from a backup" in written
    assert bool(COLOUR.search(written)) is not bool(no_color)
    assert len(written.splitlines()) <= 24


def test_status__watched__looks_again_until_interrupted(home: Path) -> None:
    process, terminal = start(home, "--watch")
    assert "ledger_corrupt" in read(terminal, until=2)
    process.send_signal(signal.SIGINT)
    read(terminal)
    assert process.wait(60) == 0
