"""A reader of carbon reports: a report that was there stays, with all its modules, and adds up."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from dataclasses import dataclass, field

from domain.shared.error import PerennialError
from services.carbon.report import Report, report_of
from services.carbon.service import CarbonService
from tests.chaos.carbon_files import TOP, YEARS
from tests.chaos.companions import complaining
from tests.chaos.rounds import Findings

PAUSE = 0.3


@dataclass
class CarbonReader:
    carbon: CarbonService
    luck: random.Random
    found: Findings
    had: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def read(self, stop: threading.Event) -> None:
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            year = self.luck.choice(YEARS)
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
        modules = {row["module"] for row in report.rows}
        if gone := self.had[year] - modules:
            self.found.complaints.append(f"a reader had read {sorted(gone)} in {year}; they are gone")
        self.had[year] |= modules
        self.found.complaints += unbalanced(report)


def unbalanced(report: Report) -> list[str]:
    """A complaint if the top of the tree has not what all units have together."""
    top = sum(row["total_mg"] for row in report.units if row["unit_id"] == TOP)
    if top == report.total_mg:
        return []
    return [f"{TOP} has {top} mg in {report.year}, its units {report.total_mg}"]
