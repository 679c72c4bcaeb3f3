"""A drop folder under test: people put files there, time passes, looks send and runs read."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from domain.carbon.dropped import SETTLED
from domain.shared.clock import machine_clock
from resources.ledger.client import Ledger
from services.carbon.drop import Dropped, take_dropped
from services.carbon.drop_look import DropLook, look_at_drop
from services.carbon.service import CarbonService


def reuse_inodes(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """A new file gets the number of one that is gone, at once, as on ext4. Memory, where tests write, never
    gives a number twice."""
    numbers: dict[int, int] = {}

    def number(inode: int) -> int:
        if inode not in numbers:
            live = {path.lstat().st_ino for path in folder.rglob("*")}
            for gone in numbers.keys() - live:
                del numbers[gone]
            numbers[inode] = next(n for n in count(1) if n not in numbers.values())
        return numbers[inode]

    def stamp(about: os.stat_result) -> str:
        return f"{about.st_size}:{about.st_mtime_ns}:{number(about.st_ino)}"

    patch.setattr("services.carbon.drop_folder._stamp", stamp)


class Drop:
    """`carbon` opens the office; looks are at moments that the test tells."""

    def __init__(self, carbon: CarbonService, folder: Path) -> None:
        self.folder = folder
        # Whatever passes in a test, it is past to everybody else.
        self.moment = machine_clock() - timedelta(hours=6)
        ledger = Ledger.open(
            carbon.ledger.engine.url.render_as_string(hide_password=False),
            kinds=carbon.ledger.kinds.values(),
            clock=lambda: self.moment,
            machine_clock=lambda: self.moment,
        )
        self.carbon = CarbonService(carbon.catalogue, carbon.lake, ledger, carbon.staging)
        self.cursor = ""
        self.told: list[Dropped] = []

    def put(self, place: str, text: str) -> Path:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    def reconcile(self, later: float = 0.0, unfinished: Collection[str] = ()) -> DropLook:
        self.moment += timedelta(seconds=later)
        seen = look_at_drop(self.carbon, self.folder, self.cursor, unfinished)
        self.cursor = seen.cursor
        return seen

    def run(self, seen: DropLook) -> list[tuple[str, str]]:
        """What became of each file the look sent for."""
        self.told = []
        for start in seen.starts:
            take_dropped(self.carbon, self.folder, start.rows, f"run {start.id}", self.told.append)
        return [(Path(one.place).name, one.outcome) for one in self.told]

    def taken(self) -> list[tuple[str, str]]:
        """Two looks and what they send for."""
        found = self.run(self.reconcile(10.0))
        return found + self.run(self.reconcile(SETTLED))
