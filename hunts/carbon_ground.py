"""Where a carbon hunt takes place: homes, what was uploaded to each, and how it ends."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hunts.carbon_files import Sheet
from hunts.carbon_yardstick import complaints, uploaded
from hunts.house import House
from hunts.races import told, unfinished
from hunts.rounds import Found
from services.carbon.upload import upload
from services.carbon.uploaded_file import File
from tests.settings import make_settings

HEALINGS = 8
"""Looks after which all must be done: each death is waited for once, and tried again."""


@dataclass
class Scene:
    """One home, and the sheets that somebody may have uploaded to it."""

    house: House
    ground: CarbonGround
    found: Found
    sheets: list[Sheet] = field(default_factory=list)
    deaths: int = 0

    def words(self, *sheets: Sheet) -> tuple[str, ...]:
        """The command that uploads these: all of one kind, type and institution."""
        first = sheets[0]
        paths = [str(self._file(sheet)) for sheet in sheets]
        said = ("carbon", "upload", first.kind, *paths, "--year", str(first.year))
        typed = ("--type", first.topic) if first.topic else ()
        return (*said, *typed, "--institution", first.institution)

    def _file(self, sheet: Sheet) -> Path:
        self.sheets.append(sheet)
        folder = self.house.home.with_name(f"{self.house.home.name}-files")
        folder.mkdir(exist_ok=True)
        path = folder / sheet.name
        path.write_bytes(sheet.content)
        return path

    def furnish(self, sheets: Sequence[Sheet]) -> None:
        """Uploaded and calculated with nobody else there."""
        self.put(sheets)
        said = self.house.run("carbon", "heal")
        if said.code:
            raise RuntimeError(f"not even without trouble:\n{said.text}")

    def put(self, sheets: Sequence[Sheet]) -> None:
        """Uploaded, and nothing more."""
        self.sheets += sheets
        carbon = self.house.carbon
        for sheet in sheets:
            upload(carbon, _as_file(sheet))

    def heal(self) -> None:
        """What is left to do is done by the command, however often a wait has to pass before."""
        for _ in range(HEALINGS):
            said = self.house.run("carbon", "heal")
            if "Traceback" in said.text:
                self.found.complaints.append(f"healing showed a traceback: {said.text[-600:]}")
                return
            if said.code == 0:
                return
            self.found.count(healings=1)
            self.house.lease_runs_out()
            self.house.waits_run_out()
            self._retry_abandoned()
        self.found.complaints.append(f"not healed after {HEALINGS} times: {said.text[-600:]}")

    def _retry_abandoned(self) -> None:
        """What a person does about work that has killed too many of its workers."""
        for row in self.house.carbon.ledger.find(status="failed", limit=None):
            if row.reason_code == "abandoned":
                said = self.house.run("work", "retry", str(row.id))
                self.found.count(retried=1)
                if said.code not in (0, 1) or "Traceback" in said.text:
                    self.found.complaints.append(f"retry of {row.id} ended with {said.code}: {said.text}")

    def judge(self) -> None:
        """Everything that must hold when all is quiet."""
        with told(self.found):
            self.found.complaints += unfinished(self.house)
            carbon = self.house.carbon
            came = uploaded(carbon, self.sheets)
            with self.ground.same_in_a_row(came) as clean:
                self.found.complaints += complaints(carbon, clean.carbon, came, deaths=self.deaths)
            self.found.count(uploads=len(came))


@dataclass
class CarbonGround:
    folder: Path
    seconds: float = 0.0
    """What taking in, calculating and summing all the furniture takes here."""
    _homes: int = 0

    @contextmanager
    def scene(self, found: Found, database_url: str = "") -> Iterator[Scene]:
        """An empty home, gone afterwards; `database_url` is of an empty Postgres."""
        with self._house(database_url) as house:
            yield Scene(house, self, found)

    @contextmanager
    def same_in_a_row(self, sheets: Sequence[Sheet]) -> Iterator[House]:
        """A home filled with these files, one after another and by nobody else."""
        with self._house("") as house:
            Scene(house, self, Found()).furnish(sheets)
            yield house

    @contextmanager
    def _house(self, database_url: str) -> Iterator[House]:
        self._homes += 1
        house = House.build(self.folder / f"home-{self._homes}", now=None)
        if database_url:
            house.settings = make_settings(
                house.settings, env="production", database_url=database_url, catalog_url=database_url
            )
        try:
            yield house
        finally:
            house.close()
            shutil.rmtree(house.home, ignore_errors=True)


@contextmanager
def carbon_ground() -> Iterator[CarbonGround]:
    with tempfile.TemporaryDirectory(prefix="hunts-") as folder:
        yield CarbonGround(Path(folder))


def _as_file(sheet: Sheet) -> File:
    return File(
        kind=sheet.kind,
        name=sheet.name,
        content=sheet.content,
        by="hunts",
        institution=sheet.institution,
        year=sheet.year,
        data_entry_type=sheet.topic or None,
    )
