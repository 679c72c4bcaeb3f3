"""`python -m hunts.reading WHOLE KEPT LOSSES SEED`: somebody who reads all the while, until SIGTERM.

Every table as it is now, and as it was at snapshots and moments read before. The source tells the truth
here, so at any moment each day is absent or whole: as in the file WHOLE. A day that was there stays, unless
LOSSES says that days are taken away. What was read once as of a snapshot has to be there in the same words
for KEPT seconds after it was last seen to be the current one; later it may be gone, and must say so.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from domain.market.tables import COVERAGE, QFQ_DAILY
from domain.shared.clock import machine_clock
from domain.shared.table import Version
from hunts.companions import report, until_told
from orchestration.environments import load_settings
from orchestration.services import open_lake
from resources.lake.client import Lake
from resources.lake.content_hash import versions_of
from resources.lake.engine import in_own_types
from resources.lake.error import SnapshotGone

THREADS = 2
"""Readers of a process, beside one who watches: they share its lake."""
SETTLED = timedelta(seconds=5)
"""After so long no commit under way can still belong to an earlier moment."""
PAUSE, WATCHING = 0.3, 0.005
SLOW = 0.02
"""So often somebody leaves for a while between opening and reading."""


@dataclass
class Seen:
    """What a snapshot of a table held, and when it was seen to be the current one."""

    table: str
    snapshot: int
    content: Mapping[str, Version]
    first: datetime
    last: datetime


@dataclass
class Reader:
    lake: Lake
    whole: Mapping[str, Mapping[str, str]]
    kept: timedelta
    losses: bool
    luck: random.Random
    told: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    seen: dict[int, Seen] = field(default_factory=dict)
    had: dict[str, set[str]] = field(default_factory=dict)

    def read(self, stop: threading.Event) -> None:
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            self.reconcile(stop)

    def reconcile(self, stop: threading.Event) -> None:
        """Each table once in any order, and after each something from earlier."""
        for table in self.luck.sample(sorted(self.lake.tables), len(self.lake.tables)):
            if stop.is_set():
                return
            if self.luck.random() < SLOW:
                self._met(f"{table}, slowly", lambda name=table: self._slowly(name, stop))
            self._met(f"{table} now", lambda name=table: self._now(name))
            if self.seen:
                self._again(self.luck.choice(list(self.seen.values())))
        query = f"SELECT trade_date, count(*) AS n FROM {QFQ_DAILY} GROUP BY ALL"
        self._met(QFQ_DAILY, lambda: self.lake.sql(query))

    def watch(self, stop: threading.Event) -> None:
        """Only which days there are: so cheap that it is done often enough to see the shortest hole."""
        while not stop.wait(WATCHING):
            table = self.luck.choice(list(self.lake.tables))
            self.told["watched"] += 1
            self._met(f"the days of {table}", lambda name=table: self._days(name))

    def _days(self, table: str) -> None:
        self._never_less(table, self.lake.partitions(table))

    def _met(self, what: str, read: Callable[[], object]) -> None:
        try:
            read()
        except Exception as error:  # noqa: BLE001 - whatever a reader meets is what is looked for
            self.complaints.append(f"a reader of {what} met {type(error).__name__}: {str(error)[:300]}")

    def _now(self, table: str) -> None:
        snapshot = self.lake.snapshot_id(table)
        content = self._content(table, None)
        self._judge(table, content)
        self._never_less(table, content)
        moment = machine_clock()
        if snapshot is None or self.lake.snapshot_id(table) != snapshot:
            return
        known = self.seen.setdefault(snapshot, Seen(table, snapshot, content, moment, moment))
        known.last = moment
        if known.content != content:
            self.complaints.append(f"{table}: the current snapshot {snapshot} reads otherwise than before")

    def _never_less(self, table: str, days: Collection[str]) -> None:
        had = self.had.setdefault(table, set())
        if not self.losses and (gone := had.difference(days)):
            self.complaints.append(f"a reader of {table} had seen {sorted(gone)}, and they were not there")
        had.update(days)

    def _slowly(self, table: str, stop: threading.Event) -> None:
        """A stream that is opened now and read much later shows what was there when it was opened."""
        stream = self.lake.scan(table)
        stop.wait(self.luck.uniform(0, self.kept.total_seconds() / 2))
        self.told["slow"] += 1
        self._judge(table, versions_of(self.lake.tables[table], stream))

    def _again(self, seen: Seen) -> None:
        as_of = seen.first if seen.last - seen.first > SETTLED and self.luck.random() < 0.5 else seen.snapshot
        age = (machine_clock() - seen.last).total_seconds()
        what = f"{seen.table} as of {as_of}, current {age:.1f} s ago"

        def read() -> None:
            try:
                content = self._content(seen.table, as_of)
            except SnapshotGone as gone:
                del self.seen[seen.snapshot]
                self.told["gone"] += 1
                if machine_clock() - seen.last < self.kept - SETTLED:
                    self.complaints.append(
                        f"{what}: not kept for {self.kept.total_seconds():.0f} s: {gone.message}"
                    )
                return
            self.told["again"] += 1
            if content != seen.content:
                self.complaints.append(f"{what}: {_different(seen.content, content)}")

        self._met(what, read)

    def _content(self, table: str, as_of: int | datetime | None) -> dict[str, Version]:
        self.told["reads"] += 1
        definition = self.lake.tables[table]
        if self.luck.random() < 0.5:
            return versions_of(definition, self.lake.scan(table, as_of=as_of))
        snapshots = {table: as_of} if isinstance(as_of, int) else as_of
        rows = self.lake.sql(f"SELECT * FROM {table}", as_of=snapshots)
        return versions_of(definition, [in_own_types(definition, rows)])

    def _judge(self, table: str, content: Mapping[str, Version]) -> None:
        for partition, version in content.items():
            whole = self.whole[table].get(partition)
            if whole is None:
                continue  # a day that came due since: it is compared when all is quiet
            # What coverage says of a day changes with the day's tables, of how many it speaks does not.
            same = whole.startswith(f"{version.rows}:") if table == COVERAGE.name else whole == str(version)
            if not same:
                self.complaints.append(f"a reader of {table} saw {partition} as {version}, whole is {whole}")


def _different(before: Mapping[str, Version], after: Mapping[str, Version]) -> str:
    wrong = [p for p in sorted({*before, *after}) if before.get(p) != after.get(p)]
    return f"{wrong[0]} was {before.get(wrong[0])} and is {after.get(wrong[0])} ({len(wrong)} partitions)"


def main() -> None:
    whole, kept = json.loads(Path(sys.argv[1]).read_text()), timedelta(seconds=float(sys.argv[2]))
    losses, seed = sys.argv[3] == "losses", sys.argv[4]
    lake = open_lake(load_settings())
    readers = [
        Reader(lake, whole, kept, losses, random.Random(f"{seed} {n}"))  # noqa: S311 - luck
        for n in range(THREADS + 1)
    ]
    until_told(readers[0].watch, *(reader.read for reader in readers[1:]))
    report(sum((r.told for r in readers), Counter()), [c for r in readers for c in r.complaints])


if __name__ == "__main__":
    main()
