"""Rounds in which the processes that ingest, calculate and aggregate die: kill -9 of a process group at
random moments, several in a row on one home."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from functools import partial

from domain.carbon.jobs import AGGREGATION, DATA_INGEST, FACTOR_INGEST, RECALCULATION
from domain.carbon.tables import REPORTS
from services.carbon.report import report_of
from tests.chaos.carbon_files import YEARS, SheetWriter
from tests.chaos.carbon_home import HEAL, CarbonHome, Homes, on_both
from tests.chaos.carbon_reader import unbalanced
from tests.chaos.companions import complaining
from tests.chaos.home import COMMAND_SECONDS, after, commits, kill_group, wait_until
from tests.chaos.market_checks import duplicate_keys
from tests.chaos.races import REASON
from tests.chaos.rounds import Findings, Round

MOMENT_SECONDS = 60.0
"""How long a moment to kill is waited for: with nothing left to do, it never comes."""
COMMAND_TAKES = 6.0
MOMENTS = ("at_time", "at_commit", "at_claim")
KINDS = (FACTOR_INGEST, DATA_INGEST, RECALCULATION, AGGREGATION)


def rounds(homes: Homes, number: int, seed: int) -> dict[str, Round]:
    """Series of one to four kills on one home."""
    luck = random.Random(f"{seed} series")
    lengths = [luck.choice((1, 2, 3, 4)) for _ in range(number)]
    return on_both(homes, {f"kill-{n}x{k}": partial(series, length=k) for n, k in enumerate(lengths, 1)})


def series(homes: Homes, luck: random.Random, database_url: str = "", *, length: int) -> Findings:
    found, writer = Findings(), SheetWriter(luck)
    with homes.open(found, database_url) as app:
        before = writer.complete_set()
        app.fill(before if luck.random() < 0.7 else before[: len(YEARS)])
        for _ in range(length):
            _kill(app, writer, luck)
            with complaining(found, "a reader after a death"):
                found.complaints += _wrong_after_death(app)
            if luck.random() < 0.5:
                _heal_at_once(app)
            if luck.random() < 0.3:
                app.home.expire_leases()
                app.home.end_waits()
        app.heal()
        app.check()
    return found


def _kill(app: CarbonHome, writer: SheetWriter, luck: random.Random) -> None:
    """One to three commands at once; one of them is killed, or all are."""
    uploads = [writer.any_sheet(partly=True) for _ in range(luck.randint(1, 3))]
    commands = [(*app.upload_command(sheet), "--wait") for sheet in uploads]
    if luck.random() < 0.3:
        commands.append(HEAL)
    name, when = _moment(app, luck)
    started = [app.home.start(*words) for words in commands]
    processes = [process for process, _ in started]
    victims = processes if luck.random() < 0.5 else [luck.choice(processes)]
    try:
        wait_until(lambda: all(p.poll() is not None for p in victims) or when(), MOMENT_SECONDS)
        hit = sum(_is_killed(process) for process in victims)
        for process in processes:
            process.wait(COMMAND_SECONDS)
    finally:
        for process in processes:
            kill_group(process)
    app.deaths += hit
    app.found.count(kills=hit, too_late=len(victims) - hit, **{name: 1})
    for process, output in started:
        printed = output.read_text(errors="replace")
        if "Traceback" in printed:
            app.found.complaints.append(f"ended with {process.returncode} and a traceback: {printed[-900:]}")


def _is_killed(process: subprocess.Popen[bytes]) -> bool:
    lived = process.poll() is None
    kill_group(process)
    return lived


def _moment(app: CarbonHome, luck: random.Random) -> tuple[str, Callable[[], bool]]:
    """When to kill: after some time, some commit, or some claim."""
    kind = luck.choice(MOMENTS)
    grace = luck.choice((0.0, luck.uniform(0, 0.05), luck.uniform(0, 0.5)))
    if kind == "at_time":
        return kind, after(luck.uniform(0.5, COMMAND_TAKES), lambda: True)
    if kind == "at_commit":
        commit = commits(app.home, "carbon") + luck.randint(1, 5)
        return kind, after(grace, lambda: commits(app.home, "carbon") >= commit)
    ledger, work = app.home.carbon.ledger, luck.choice(KINDS)
    return kind, after(grace, lambda: any(row.kind == work for row in ledger.running()))


def _wrong_after_death(app: CarbonHome) -> Iterator[str]:
    """Every report that exists can be read and adds up, and no key has two rows."""
    carbon = app.home.carbon
    for year in carbon.lake.partitions(REPORTS.name):
        yield from unbalanced(report_of(carbon, int(year)))
    yield from duplicate_keys(carbon.lake, "carbon.")


def _heal_at_once(app: CarbonHome) -> None:
    """Once the dead are known to be dead, healing waits only for what died again and again, and says so."""
    app.home.expire_leases()
    ended = app.home.run(*HEAL)
    app.found.count(impatient=1, impatient_done=int(ended.code == 0))
    complaints = app.found.complaints
    if ended.failed_badly or (ended.code and not REASON.search(ended.text)):
        complaints.append(f"healing after a death ended with {ended.code}: {ended.text[-600:]}")
    if held := [(row.key, row.run_id) for row in app.home.carbon.ledger.running()]:
        complaints.append(f"after healing dead processes still hold work: {held}")
