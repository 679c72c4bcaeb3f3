"""`python -m hunts.carbon_reading POSSIBLE SEED`: somebody who reads reports all the while, until SIGTERM.

POSSIBLE is a file: by year and module, the masses that a report may show. A report that was there stays, with
all its modules; each module is one of those, and the top of the tree has what all units have together.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.shared.error import PerennialError
from hunts.carbon_files import TOP
from hunts.companions import report, until_told
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings
from orchestration.settings import Settings
from services.carbon.report import Report, report_of

PAUSE = 0.3
NOT_YET = ("no_report", "ledger_schema")
"""Until the first report is there."""


@dataclass
class Reader:
    settings: Settings
    possible: Mapping[int, Mapping[str, frozenset[int]]]
    luck: random.Random
    told: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    had: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def read(self, stop: threading.Event) -> None:
        carbon = open_carbon(self.settings)
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            year = self.luck.choice(sorted(self.possible))
            try:
                found = report_of(carbon, year)
            except PerennialError as error:
                if error.reason_code not in NOT_YET or self.had[year]:
                    self._met(year, error)
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is what is looked for
                self._met(year, error)
            else:
                self.told["reads"] += 1
                self._judge(found)

    def _met(self, year: int, error: Exception) -> None:
        self.complaints.append(f"a reader of {year} met {type(error).__name__}: {str(error)[:300]}")

    def _judge(self, found: Report) -> None:
        masses: Counter[str] = Counter()
        for row in found.rows:
            masses[row["module"]] += row["mg"]
        for module, mg in masses.items():
            if mg not in self.possible[found.year][module]:
                self.complaints.append(
                    f"a reader saw {mg} mg of {module} {found.year}, which no files come to"
                )
        if gone := self.had[found.year].difference(masses):
            self.complaints.append(f"a reader had seen {sorted(gone)} in {found.year}; they were not there")
        self.had[found.year].update(masses)
        top = sum(row["total_mg"] for row in found.units if row["unit_id"] == TOP)
        if top != found.total_mg:
            self.complaints.append(f"{TOP} had {top} mg in {found.year}, its units {found.total_mg}")


def read_possible(place: Path) -> dict[int, dict[str, frozenset[int]]]:
    told = json.loads(place.read_text())
    return {int(year): {m: frozenset(mg) for m, mg in some.items()} for year, some in told.items()}


def main() -> None:
    possible, seed = read_possible(Path(sys.argv[1])), sys.argv[2]
    reader = Reader(load_settings(), possible, random.Random(seed))  # noqa: S311 - luck
    until_told(reader.read)
    report(reader.told, reader.complaints)


if __name__ == "__main__":
    main()
