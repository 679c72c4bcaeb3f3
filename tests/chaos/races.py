"""Rounds in which everything happens at once: backfills, daily runs and healing over overlapping days, with
maintenance in the middle and readers throughout.

Nothing dies and the source is well: an unreadable table or an unexplained failure is wrong.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import dagster as dg

from domain.shared.error import PerennialError
from orchestration.instance import open_instance
from orchestration.services import open_lake
from sensors.reconcile import UNFINISHED
from sensors.work_sweep import sweep
from tests.chaos.companions import companions, complaining, maintenance
from tests.chaos.home import Home, has_postgres, kill_group, postgres_url
from tests.chaos.kills import finish
from tests.chaos.market_checks import Baseline, MarketChecks
from tests.chaos.market_reader import MarketReader, clean_contents
from tests.chaos.rounds import Findings, Round

DAILY, HEAL = ("market", "daily"), ("market", "heal")
FIRST_COMMANDS = (*(("pools", "apply"),) * 3, ("migrate",), HEAL, DAILY)
READING = (("check", "market"), ("sql", "SELECT count(*) FROM market.adjusted_daily"))
DEADLINE = 400.0
"""Seconds for commands that have no reason to wait: their work is one backfill's, done by five of them."""
PAUSE = 1.0
REASON = re.compile(r"^(error|failed|broken|stale|healing|ALERT)\b.*: \S|pieces are not whole", re.MULTILINE)
"""How a command that ends with 1 says why."""

Started = tuple[Sequence[str], subprocess.Popen[bytes], Path]
"""A command, its process, and the file of what it prints."""


def rounds(base: Baseline, crowds: int) -> dict[str, Round]:
    made: dict[str, Round] = {f"crowd-{n}": partial(crowd, base) for n in range(1, crowds + 1)}
    made |= {f"first-{n}": partial(first, base) for n in range(1, crowds + 1)}
    return made | ({"crowd-postgres": partial(_crowd_on_postgres, base)} if has_postgres() else {})


def _crowd_on_postgres(base: Baseline, luck: random.Random) -> Findings:
    with postgres_url() as url:
        return crowd(base, luck, url)


def crowd(base: Baseline, luck: random.Random, database_url: str = "") -> Findings:
    """Many commands at once, half of the time on an empty home."""
    found = Findings()
    with base.home(database_url=database_url) as home:
        if luck.random() < 0.5:
            half = base.days[: len(base.days) // 2]
            home.run("market", "backfill", "--from", str(half[0]), "--to", str(half[-1]))
        # What a home lives through in weeks passes in a round: snapshots are kept for seconds.
        kept, clean = timedelta(seconds=max(10.0, 1.5 * base.seconds)), clean_contents(base.checks.clean.lake)
        lucks = [random.Random(luck.randrange(2**31)) for _ in range(4)]
        readers = [MarketReader(open_lake(home.settings), clean, each, found) for each in lucks[1:]]
        loops = (readers[0].watch, *(reader.read for reader in readers[1:]))
        with companions(maintenance(home, found, kept, lucks[0]), *loops):
            spread = luck.choice((0.0, base.seconds))
            commands = [(luck.uniform(0, spread), words) for words in _commands(base, luck)]
            run_together(home, found, commands, base.checks)
        with complaining(found, "the check of the home"):
            found.complaints += unfinished(home)
            finish(base, home, found)
    return found


def first(base: Baseline, luck: random.Random) -> Findings:
    """The first commands of a home, all at once: they make its databases. Then the home can be used."""
    found = Findings()
    with base.home() as home:
        run_together(home, found, [(0.0, words) for words in FIRST_COMMANDS], base.checks)
        run_together(home, found, [(0.0, ("doctor",))])
        with complaining(found, "the check of the home"):
            found.complaints += unfinished(home)
    return found


def _commands(base: Baseline, luck: random.Random) -> Iterator[tuple[str, ...]]:
    """Every range has the middle day in it."""
    days, middle = base.days, len(base.days) // 2
    for force in (False, luck.random() < 0.7, *luck.choice(((), (False,)))):
        begin, end = days[luck.randint(0, middle)], days[luck.randint(middle, len(days) - 1)]
        forced = ("--force",) if force else ()
        yield ("market", "backfill", "--from", str(begin), "--to", str(end), *forced)
    yield from luck.choice(((DAILY,), (HEAL,), (DAILY, HEAL)))
    yield from READING


def run_together(
    home: Home,
    found: Findings,
    commands: Iterable[tuple[float, Sequence[str]]],
    checks: MarketChecks | None = None,
) -> None:
    """Start each command after its delay in seconds, wait for all, and check how they ended.

    With `checks` nothing may be half done at any moment.
    """
    began, coming = time.monotonic(), sorted(commands, key=lambda pair: pair[0])
    started: list[Started] = []
    try:
        while coming or any(process.poll() is None for _, process, _ in started):
            passed = time.monotonic() - began
            while coming and coming[0][0] <= passed:
                words = coming.pop(0)[1]
                started.append((words, *home.start(*words)))
            if passed > DEADLINE:
                break
            if checks:
                _check_half_done(home, found, checks)
            time.sleep(PAUSE if checks else 0.1)
    finally:
        end_commands(found, started)


def _check_half_done(home: Home, found: Findings, checks: MarketChecks) -> None:
    found.count(checked=1)
    with complaining(found, "the check for half-done days"):
        try:
            found.complaints += checks.half_done(home.market)
        except PerennialError as error:
            if error.reason_code != "ledger_schema":  # until the first command has made it
                raise


def end_commands(found: Findings, started: Sequence[Started]) -> None:
    """Check how commands ended, and end those that still run."""
    for words, process, output in started:
        code, name, printed = process.poll(), " ".join(words), output.read_text(errors="replace")
        kill_group(process)
        found.count(commands=1, refused=int(code == 1))
        if code is None:
            found.complaints.append(f"{name} still runs, and waits for nothing it names: {printed[-600:]}")
        elif code not in (0, 1) or "Traceback" in printed:
            found.complaints.append(f"{name} ended with {code}: {printed[-600:]}")
        elif code and not REASON.search(printed):
            found.complaints.append(f"{name} failed and gives no reason: {printed[-600:]}")


def unfinished(home: Home) -> Iterator[str]:
    """Work and runs that run though every command has ended, or failed for an unclassified reason."""
    for row in home.market.ledger.find(limit=None):
        if row.status == "running":
            yield f"work {row.id} {row.key} is running for {row.run_id}, and every command has ended"
        if row.reason_code == "unclassified":
            yield f"work {row.id} {row.key} failed unclassified: {row.error}"
    with open_instance(home.settings) as instance:
        # A run that was killed while it held no work is ended after minutes of silence: judged an hour later.
        sweep(instance, home.market.ledger, datetime.now(UTC) + timedelta(hours=1))
        for run in instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED)):
            yield f"run {run.run_id} is {run.status.value}, and every command has ended"
