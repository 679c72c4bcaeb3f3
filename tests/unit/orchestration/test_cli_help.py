"""What `perennial --help` and the shell's completion offer."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.command import said
from tests.light import heavy_imports


def test_help__commands__stand_in_order_of_work() -> None:
    shown = said("--help").out
    words = [
        *("First steps", "demo", "up", "doctor", "Work on the data", "market", "carbon"),
        *("See what is there", "status", "plan", "check", "sql", "Operate", "work", "sandbox"),
    ]
    lines = [line.strip("│╭╮─ ") for line in shown.splitlines()]
    found = [next(n for n, line in enumerate(lines) if f"{line} ".startswith(f"{word} ")) for word in words]
    assert found == sorted(found)


def test_help__of_carbon__begins_with_what_files_hold() -> None:
    shown = said("carbon", "--help").out
    words = ("types", "template", "sample", "upload", "heal", "report", "explain", "lock")
    found = [shown.index(f"│ {word} ") for word in words]
    assert found == sorted(found)


def test_version__is_the_packages() -> None:
    answered = said("--version")
    assert (answered.code, answered.out) == (0, f"perennial {version('perennial')}\n")
    assert heavy_imports(["--version"], heavy=("dagster", "pyarrow", "duckdb", "sqlalchemy")) == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("perennial ma", "market"), ("perennial market back", "backfill"), ("perennial sql --as", "--as-of")],
)
def test_completion__of_a_word__offers_the_command(typed: str, offered: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "orchestration.cli"],
        env={**os.environ, **words, "_PERENNIAL_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert offered in done.stdout.split()


@pytest.mark.parametrize(
    "arguments",
    [
        ("market", "backfill", "--from", "17.11.2026"),
        ("market", "backfill", "--from", "2026-11-02", "--to", "tomorrow"),
        ("plan", "market", "--from", "17.11.2026"),
        ("sql", "SELECT 1", "--as-of", "17.11.2026"),
    ],
)
def test_options__date_that_is_none__show_a_good_one(arguments: tuple[str, ...]) -> None:
    answered = said(*arguments)
    assert answered.code == 2
    assert "'17.11.2026'" in answered.err or "'tomorrow'" in answered.err
    assert "2026-11-1" in answered.err
