"""`python -m tests.chaos.carbon_reader POSSIBLE SEED`: reads reports all the while, until SIGTERM.

POSSIBLE is a file: by year and module, the masses that a report may have. A report that was there stays, with
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
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings
from services.carbon.report import Report, report_of
from tests.chaos.carbon_files import TOP
from tests.chaos.companions import report, run_until_stopped

PAUSE = 0.3
NOT_YET = ("no_report", "ledger_schema")
"""Until the first report is there."""


@dataclass
class Reader:
    possible: Mapping[str, Mapping[str, list[int]]]
    luck: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    had: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def read(self, stop: threading.Event) -> None:
        carbon = open_carbon(load_settings())
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            year = int(self.luck.choice(sorted(self.possible)))
            try:
                found = report_of(carbon, year)
            except Exception as error:  # noqa: BLE001 - any error of a reader is a complaint
                early = isinstance(error, PerennialError) and error.reason_code in NOT_YET
                if not early or self.had[year]:
                    self.complaints.append(
                        f"a reader of {year} met {type(error).__name__}: {str(error)[:300]}"
                    )
            else:
                self.counts["reads"] += 1
                self._check(found)

    def _check(self, found: Report) -> None:
        year, masses = found.year, Counter[str]()
        for row in found.rows:
            masses[row["module"]] += row["mg"]
        for module, mg in masses.items():
            if mg not in self.possible[str(year)][module]:
                self.complaints.append(f"a reader saw {mg} mg of {module} {year}, which no files come to")
        if gone := self.had[year].difference(masses):
            self.complaints.append(f"a reader had seen {sorted(gone)} in {year}; they were not there")
        self.had[year].update(masses)
        top = sum(row["total_mg"] for row in found.units if row["unit_id"] == TOP)
        if top != found.total_mg:
            self.complaints.append(f"{TOP} had {top} mg in {year}, its units {found.total_mg}")


def main() -> None:
    reader = Reader(json.loads(Path(sys.argv[1]).read_text()), random.Random(sys.argv[2]))
    run_until_stopped(reader.read)
    report(reader.counts, reader.complaints)


if __name__ == "__main__":
    main()
