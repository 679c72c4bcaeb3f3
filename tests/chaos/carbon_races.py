"""Rounds in which many commands upload to one home at once; nothing dies."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager

from tests.chaos.carbon_files import SheetWriter
from tests.chaos.carbon_home import HEAL, CarbonHome, Homes, on_both
from tests.chaos.carbon_reader import CarbonReader
from tests.chaos.companions import companions
from tests.chaos.races import run_together
from tests.chaos.rounds import Findings, Round

PROCESSES = 8


def rounds(homes: Homes, number: int) -> dict[str, Round]:
    return on_both(homes, {f"crowd-{n}": crowd for n in range(1, number + 1)})


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
        with readers(app, luck):
            run_together(app.home, found, delayed)
        app.check_done()
        app.heal()
        app.check()
    return found


def readers(app: CarbonHome, luck: random.Random) -> AbstractContextManager[None]:
    """Two threads that read reports as long as the body lasts."""
    lucks = [random.Random(luck.randrange(2**31)) for _ in range(2)]
    return companions(*(CarbonReader(app.home.carbon, each, app.found).read for each in lucks))
