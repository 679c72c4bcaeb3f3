"""Rounds in which many upload to one home at once, and in which a file comes while its year is aggregated.

Nothing dies here.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from domain.carbon.tables import REPORTS
from tests.chaos.carbon_checks import excess_aggregations, newest_work
from tests.chaos.carbon_files import YEARS, Sheet, SheetWriter
from tests.chaos.carbon_home import HEAL, CarbonHome, Homes, Play, on_both
from tests.chaos.carbon_reader import CarbonReader
from tests.chaos.carbon_truth import possible
from tests.chaos.companions import companions, complaining
from tests.chaos.home import wait_until
from tests.chaos.races import DEADLINE, Started, end_commands, run_together
from tests.chaos.rounds import Findings, Round

PROCESSES = 8
AGGREGATION_SECONDS = 0.06
"""From its claim to its end, about. A process stopped later has aggregated already: nothing was tried."""
LONGEST_STOP = 40.0
"""Seconds an aggregation is stopped for files to come; its lease is longer."""


def rounds(homes: Homes, number: int) -> dict[str, Round]:
    plays: dict[str, Play] = {"crowd": crowd, "landing": landing}
    return on_both(homes, {f"{name}-{n}": plays[name] for n in range(1, number + 1) for name in plays})


def crowd(homes: Homes, luck: random.Random, database_url: str = "", processes: int = PROCESSES) -> Findings:
    """Commands at once, all but two of which upload files, with readers throughout. The last to end leaves
    nothing to do; half of the homes are empty at first."""
    found, writer = Findings(), SheetWriter(luck)
    with homes.open(found, database_url) as app:
        before = writer.complete_set()
        before = before if luck.random() < 0.5 else [s for s in before if s.kind == "units"]
        app.fill(before)
        coming = [[writer.any_sheet()] for _ in range(processes - 2)]
        for sheets in coming:
            if sheets[0].kind == "factors" and luck.random() < 0.7:  # a second file in one command
                names = sorted({row["data_entry_type"] for row in sheets[0].rows()})
                sheets.append(writer.factors(sheets[0].year, names))
        commands = [(*app.upload_command(*sheets), "--wait") for sheets in coming] + [HEAL, HEAL]
        spread = luck.choice((0.0, 0.0, 4.0))
        delayed = [(luck.uniform(0, spread), words) for words in commands]
        with readers(app, before, [s for sheets in coming for s in sheets], luck):
            run_together(app.home, found, delayed)
        app.check_done()
        app.heal()
        app.check()
    return found


def landing(homes: Homes, luck: random.Random, database_url: str = "") -> Findings:
    """Files come in, and are calculated, while their year is being aggregated: the process that aggregates
    is stopped meanwhile, at a random instruction."""
    found, writer, year = Findings(), SheetWriter(luck), YEARS[-1]
    with homes.open(found, database_url) as app:
        before = writer.complete_set()
        app.fill(before)
        since = newest_work(app.home.carbon)
        first = [writer.factors(year, ("train", "paper")), writer.data(year, "hotel")]
        later = [writer.factors(year, ("paper", "electricity")) for _ in range(luck.randint(1, 2))]
        with readers(app, before, [*first, *later], luck):
            app.upload(first)
            started: list[Started] = [(HEAL, *app.home.start(*HEAL))]
            with _stopped(app, started[0][1], f"{REPORTS.table}:{year}", luck):
                for sheet in later:
                    words = (*app.upload_command(sheet), "--wait")
                    started.append((words, *app.home.start(*words)))
                uploads, wanted = app.home.carbon.store.uploads, len(before) + len(first) + len(later)
                landed = bool(found.counts["stopped"]) and wait_until(
                    lambda: len(uploads.find(accepted=True)) >= wanted, LONGEST_STOP, every=0.05
                )
                _wait(started[1:], luck.uniform(0, LONGEST_STOP / 4))
            _wait(started, DEADLINE)
            end_commands(found, started)
        found.count(landed=int(landed))
        app.check_done()
        app.heal()
        if landed:  # else they came after the year was aggregated, and it is aggregated again
            with complaining(found, "the check of the aggregations"):
                found.complaints += excess_aggregations(app.home.carbon, year, since)
        app.check()
    return found


def _wait(started: Sequence[Started], seconds: float) -> None:
    wait_until(lambda: all(process.poll() is not None for _, process, _ in started), seconds, every=0.05)


@contextmanager
def _stopped(
    app: CarbonHome, process: subprocess.Popen[bytes], key: str, luck: random.Random
) -> Iterator[None]:
    """The process is stopped some moment after it has claimed this work, for as long as the body lasts."""
    ledger = app.home.carbon.ledger

    def claimed() -> bool:
        return key in {row.key for row in ledger.running()}

    wait_until(lambda: process.poll() is not None or claimed(), DEADLINE, every=0.001)
    time.sleep(luck.uniform(0, AGGREGATION_SECONDS))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGSTOP)
    app.found.count(stopped=int(claimed()))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)


def readers(
    app: CarbonHome, before: Sequence[Sheet], coming: Sequence[Sheet], luck: random.Random
) -> AbstractContextManager[None]:
    """Two threads that read reports as long as the body lasts."""
    masses = {year: possible(before, coming, year) for year in YEARS}
    lucks = [random.Random(luck.randrange(2**31)) for _ in range(2)]
    return companions(*(CarbonReader(app.home.carbon, masses, each, app.found).read for each in lucks))
