"""Carbon's inbox under test: people put files there, passes find them and runs import them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from domain.shared.clock import machine_clock
from services.carbon.inbox import import_file, open_inbox
from services.carbon.service import CarbonService
from services.inbox import REPORT, FileOutcome, import_files, poll


class CarbonInbox:
    def __init__(self, carbon: CarbonService, folder: Path) -> None:
        self.folder = folder
        self.inbox = open_inbox(folder)
        self.carbon = carbon
        self.stamps: dict[str, str] = {}
        self.start = machine_clock()

    def put(self, path: str, text: str, age: float | None = None) -> Path:
        """Put a file there, written so many seconds before the test's start, or now."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
        if age is not None:
            moment = self.start.timestamp() - age
            os.utime(target, (moment, moment))
        return target

    def find_and_run(self) -> dict[str, str]:
        """Two passes and the run that the second starts; by file name what became of it."""
        outcomes: dict[str, str] = {}

        def report(path: str, outcome: FileOutcome) -> None:
            outcomes[Path(path).name] = outcome.reason_code

        for _ in range(2):
            found = poll(self.inbox, self.carbon.ledger, self.stamps)
            self.stamps = dict(found.stamps)
            for dispatch in found.dispatches:
                work = partial(import_file, self.carbon)
                import_files(self.inbox, self.carbon.ledger, dispatch.rows, dispatch.id, work, report)
        return outcomes

    def report(self, path: str) -> str:
        return (self.folder / f"{path}{REPORT}").read_text(encoding="utf-8")
