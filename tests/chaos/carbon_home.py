"""Homes of carbon rounds: what was uploaded to each, and how it ends."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from services.carbon.upload import upload
from tests.chaos.carbon_checks import complaints, sheets_in_order
from tests.chaos.carbon_files import Sheet
from tests.chaos.companions import complaining
from tests.chaos.home import Home, has_postgres, postgres_url
from tests.chaos.market_checks import run_undisturbed
from tests.chaos.races import unfinished
from tests.chaos.rounds import Findings, Round

HEAL = ("carbon", "heal")
HEALS = 8
"""Passes after which all must be done: each death is waited for once, and tried again."""
Play = Callable[["Homes", random.Random, str], Findings]
"""A round on an empty home; the text is the address of an empty Postgres, if not on SQLite."""


@dataclass
class CarbonHome:
    """One home, and the sheets that somebody may have uploaded to it."""

    home: Home
    homes: Homes
    found: Findings
    sheets: list[Sheet] = field(default_factory=list)
    deaths: int = 0

    def upload_command(self, *sheets: Sheet) -> tuple[str, ...]:
        """The command that uploads these: all of one kind, type and institution."""
        self.sheets += sheets
        folder = self.home.sibling("files")
        folder.mkdir(exist_ok=True)
        for sheet in sheets:
            (folder / sheet.name).write_bytes(sheet.content)
        first = sheets[0]
        paths = [str(folder / sheet.name) for sheet in sheets]
        topic = ("--type", first.topic) if first.topic else ()
        scope = ("--year", str(first.year), *topic, "--institution", first.institution, "--replace")
        return ("carbon", "upload", first.kind, *paths, *scope)

    def fill(self, sheets: Sequence[Sheet]) -> None:
        """Upload and calculate with nobody else there."""
        self.upload(sheets)
        run_undisturbed(self.home, *HEAL)

    def upload(self, sheets: Sequence[Sheet]) -> None:
        """Upload, and calculate nothing."""
        self.sheets += sheets
        carbon = self.home.carbon
        for sheet in sheets:
            upload(carbon, sheet.file(), may_shrink=True)

    def heal(self) -> None:
        """The command does what is left to do, however often a wait has to pass before."""
        for _ in range(HEALS):
            ended = self.home.run(*HEAL)
            if "Traceback" in ended.text:
                self.found.complaints.append(f"healing showed a traceback: {ended.text[-600:]}")
                return
            if ended.code == 0:
                return
            self.found.count(heals=1)
            self.home.expire_leases()
            self.home.end_waits()
            self._retry_abandoned()
        self.found.complaints.append(f"not healed after {HEALS} passes: {ended.text[-600:]}")

    def _retry_abandoned(self) -> None:
        """What a person does about work that has killed too many of its workers."""
        for row in self.home.carbon.ledger.find(status="failed", limit=None):
            if row.reason_code == "abandoned":
                ended = self.home.run("work", "retry", str(row.id))
                self.found.count(retried=1)
                if ended.failed_badly:
                    self.found.complaints.append(f"retry of {row.id} ended with {ended.code}: {ended.text}")

    def check_done(self) -> None:
        """Every command has ended and nobody died: the last to end has left nothing to do."""
        carbon = self.home.carbon
        for row in carbon.ledger.find(status=("running", "queued", "deferred"), limit=None):
            why = f"{row.reason_code}: {row.error}"
            self.found.complaints.append(f"all have ended, work {row.id} {row.key} is {row.status} ({why})")
        if due := [v.key for v in carbon.plan().due]:
            self.found.complaints.append(f"all have ended, and {due} are due")

    def check(self) -> None:
        """Everything that must hold when all is quiet."""
        with complaining(self.found, "the check of the home"):
            self.found.complaints += unfinished(self.home)
            carbon = self.home.carbon
            came = sheets_in_order(carbon, self.sheets)
            with self.homes.open(Findings()) as clean:
                clean.fill(came)
                self.found.complaints += complaints(carbon, clean.home.carbon, came, deaths=self.deaths)
            self.found.count(uploads=len(came))


@dataclass
class Homes:
    folder: Path
    _opened: int = 0

    @contextmanager
    def open(self, found: Findings, database_url: str = "") -> Iterator[CarbonHome]:
        """An empty home, gone afterwards."""
        self._opened += 1
        folder = self.folder / f"home-{self._opened}"
        with Home.opened(folder, now=None, database_url=database_url) as home:
            yield CarbonHome(home, self, found)


@contextmanager
def carbon_homes() -> Iterator[Homes]:
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        yield Homes(Path(folder))


def on_both(homes: Homes, plays: Mapping[str, Play]) -> dict[str, Round]:
    """On SQLite, and on Postgres where there is one."""

    def on_sqlite(play: Play, luck: random.Random) -> Findings:
        return play(homes, luck, "")

    def on_postgres(play: Play, luck: random.Random) -> Findings:
        with postgres_url() as url:
            return play(homes, luck, url)

    made: dict[str, Round] = {name: partial(on_sqlite, play) for name, play in plays.items()}
    if has_postgres():
        made |= {f"{name}-postgres": partial(on_postgres, play) for name, play in plays.items()}
    return made
