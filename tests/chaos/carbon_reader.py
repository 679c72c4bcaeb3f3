"""A reader of carbon reports: a report stays, with all its modules; each module has a possible mass."""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.shared.error import PerennialError
from services.carbon.report import Report, report_of
from services.carbon.service import CarbonService
from tests.chaos.carbon_files import TOP
from tests.chaos.companions import complaining
from tests.chaos.rounds import Findings

PAUSE = 0.3


@dataclass
class CarbonReader:
    carbon: CarbonService
    possible: Mapping[int, Mapping[str, list[int]]]
    """By year and module, the masses in mg that a report may have."""
    luck: random.Random
    found: Findings
    had: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def read(self, stop: threading.Event) -> None:
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            year = self.luck.choice(sorted(self.possible))
            with complaining(self.found, f"a reader of {year}"):
                self._read(year)

    def _read(self, year: int) -> None:
        try:
            report = report_of(self.carbon, year)
        except PerennialError as error:
            if error.reason_code != "no_report" or self.had[year]:
                raise
            return
        self.found.count(reads=1)
        masses = Counter[str]()
        for row in report.rows:
            masses[row["module"]] += row["mg"]
        for module, mg in masses.items():
            if mg not in self.possible[year][module]:
                self.found.complaints.append(f"{mg} mg of {module} {year} follow from no set of files")
        if gone := self.had[year].difference(masses):
            self.found.complaints.append(f"a reader had read {sorted(gone)} in {year}; they are gone")
        self.had[year].update(masses)
        self.found.complaints += unbalanced(report)


def unbalanced(report: Report) -> list[str]:
    """A complaint if the top of the tree has not what all units have together."""
    top = sum(row["total_mg"] for row in report.units if row["unit_id"] == TOP)
    if top == report.total_mg:
        return []
    return [f"{TOP} has {top} mg in {report.year}, its units {report.total_mg}"]
