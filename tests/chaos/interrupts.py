"""Rounds of Ctrl-C: long commands are interrupted at random moments, and the next command goes on at once."""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from orchestration.cli.interrupt import GRACE
from orchestration.instance import open_instance
from sandbox.carbon.institution import write
from sandbox.faults import Fault
from sensors.work_sweep import BEGUN
from tests.chaos.home import EVENING, Home, wait_until
from tests.chaos.rounds import Findings
from tests.settings import make_settings

PROMPT_SECONDS = 2.0
"""Within which the prompt is back."""
SPAN = ("--from", "2024-07-01", "--to", "2024-09-27")
LINE = "interrupted: what was committed is kept"
GO_ON = "; give the same command again to go on\n"


def series(luck: random.Random, tries: int = 20) -> Findings:
    return interrupt_commands(luck, tries, 20.0, healed=True)


def interrupt_commands(luck: random.Random, tries: int, seconds: float, *, healed: bool = False) -> Findings:
    """Interrupt commands of one home, each at a moment of its first seconds; then give one of them again."""
    found = Findings()
    with tempfile.TemporaryDirectory(prefix="interrupts-") as folder:
        # So few calls a minute that threads wait for the pace, and a source that answers slowly.
        paced = {"tushare_calls_per_minute": 60}
        with Home.opened(Path(folder) / "home", now=EVENING, **paced) as home:
            commands = _commands(Path(folder) / "files")
            home.server.faults.add(Fault("*", "stall", rate=0.3, seconds=1.5, seed=luck.randrange(99)))
            for _ in range(tries):
                _interrupt(home, found, luck.choice(commands), luck.uniform(0.3, seconds))
            home.server.faults.clear()
            if healed:
                home.settings = make_settings(home.settings, tushare_calls_per_minute=100_000)
                _heal(home, found)
    return found


def _commands(folder: Path) -> list[tuple[str, ...]]:
    """Long commands. The files of a year are large enough that DuckDB is met at work."""
    files = [one.path for one in write(folder, 0.2, years=[2025]) if one.kind == "factors"]
    return [
        ("market", "backfill", *SPAN),
        ("market", "backfill", *SPAN),
        ("market", "daily"),
        ("market", "heal"),
        ("carbon", "upload", "factors", *map(str, files), "--wait"),
        ("demo",),
    ]


def _interrupt(home: Home, found: Findings, words: Sequence[str], after: float) -> None:
    process, output = home.start(*words)
    try:
        if wait_until(lambda: process.poll() is not None, after):
            found.count(too_late=1)
            return
        before = len(output.read_text())
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        process.wait(20)
        took = time.monotonic() - began
    finally:
        process.kill()
        process.wait()
    found.count(interrupted=1)
    found.counts["slowest_ms"] = max(found.counts.get("slowest_ms", 0), int(took * 1000))
    where = f"{' '.join(words[:2])} after {after:.2f} s"
    text = output.read_text()
    if "Failed to import the site module" in text:
        found.count(before_python_was_up=1)
        return
    if process.returncode == -signal.SIGINT and text == text[:before]:
        found.count(at_its_end=1)  # Python itself was ending; a shell shows 130 too
    elif process.returncode != 130 or took > PROMPT_SECONDS:
        found.complaints.append(f"{where}: {process.returncode} in {took:.2f} s")
    said = [line for line in text[before:].splitlines(keepends=True) if not line.startswith("progress")]
    if [line for line in said if line.startswith(LINE) and line.endswith(GO_ON)] != said:
        found.complaints.append(f"{where}: said {said}")
    left = _left(home)
    if took > GRACE:  # a machine so busy that the command had to end itself: the next one tidies up
        found.count(ended_by_its_watcher=1)
    else:
        found.complaints += [f"{where}: {each}" for each in left]


def _heal(home: Home, found: Findings) -> None:
    """The next command goes on at once, whatever the interrupted ones left."""
    for words in (("market", "backfill", *SPAN), ("market", "heal"), ("carbon", "heal")):
        ended = home.run(*words)
        if ended.code:
            found.complaints.append(f"{' '.join(words)} ended with {ended.code}: {ended.text[-600:]}")
    found.complaints += [f"after healing: {left}" for left in _left(home)]


def _left(home: Home) -> list[str]:
    """What the next command would have to wait for."""
    try:
        held = [row.key for row in home.carbon.ledger.running()]
    except Exception as error:  # noqa: BLE001 - a complaint
        return [str(error)]
    with open_instance(home.settings) as instance:
        begun = [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=BEGUN))]
    return [f"{key} is leased" for key in held] + [f"run {run} has not ended" for run in begun]
