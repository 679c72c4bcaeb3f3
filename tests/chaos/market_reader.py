"""`python -m tests.chaos.market_reader CONTENTS KEPT SEED`: reads all the while, until SIGTERM.

Reads every table as it is now, and as it was at snapshots and moments read before. The source is well here,
so at any moment each day is absent or has the content of the clean home, which is in the file CONTENTS; and a
day that was there stays. What was read once of a snapshot has to be readable with the same content for KEPT
seconds after it was last the current one; later it may be gone, and the error must say so.
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
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from domain.market.tables import COVERAGE, QFQ_DAILY
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError
from domain.shared.table import Table
from orchestration.environments import load_settings
from orchestration.services import open_lake
from resources.lake.client import Lake
from tests.chaos.companions import report, run_until_stopped

THREADS = 2
"""Readers of a process, beside one that watches the partitions: they share its lake."""
SETTLED = timedelta(seconds=5)
"""After so long no commit under way can still belong to an earlier moment."""
PAUSE, WATCH_PAUSE = 0.3, 0.005
SHARE_SLOW = 0.02
"""Reads with a pause between opening and reading."""
VIEW_QUERY = f"SELECT trade_date, count(*) AS n FROM {QFQ_DAILY} GROUP BY ALL"

Content = dict[str, str]
"""By partition, its rows and a hash of them."""


def content_of(table: Table, rows: pa.Table) -> Content:
    key = " || '|' || ".join(f"CAST({name} AS VARCHAR)" for name in table.partition_columns) or "'ALL'"
    found = rows.select(table.schema.names).cast(table.schema)  # noqa: F841 - named in the query
    query = (
        f"SELECT {key}, count(*) || ':' || bit_xor(hash(found)) FROM found GROUP BY ALL HAVING count(*) > 0"
    )
    return dict(duckdb.connect().sql(query).fetchall())


def write_contents(lake: Lake, path: Path) -> Path:
    """The contents of a clean home, for readers in other processes."""
    tables = [t for name, t in lake.tables.items() if name.startswith("market.")]
    path.write_text(json.dumps({t.name: content_of(t, lake.scan(t.name).read_all()) for t in tables}))
    return path


@dataclass
class Seen:
    """What a snapshot of a table held, and when it was seen to be the current one."""

    table: str
    snapshot: int
    content: Content
    first: datetime
    last: datetime


@dataclass
class Reader:
    lake: Lake
    clean: Mapping[str, Content]
    kept: timedelta
    luck: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    seen: dict[int, Seen] = field(default_factory=dict)
    had: dict[str, set[str]] = field(default_factory=dict)

    def read(self, stop: threading.Event) -> None:
        """Each table in random order, and after each something from earlier."""
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            for table in self.luck.sample(sorted(self.clean), len(self.clean)):
                if stop.is_set():
                    return
                if self.luck.random() < SHARE_SLOW:
                    self._try(f"{table}, slowly", partial(self._slowly, table, stop))
                self._try(f"{table} now", partial(self._now, table))
                if self.seen:
                    self._again(self.luck.choice(list(self.seen.values())))
            self._try(QFQ_DAILY, partial(self.lake.sql, VIEW_QUERY))

    def watch(self, stop: threading.Event) -> None:
        """Only which partitions there are: cheap enough to see the shortest hole."""
        while not stop.wait(WATCH_PAUSE):
            table = self.luck.choice(list(self.clean))
            self.counts["watched"] += 1
            self._try(f"the days of {table}", partial(self._days, table))

    def _days(self, table: str) -> None:
        self._never_less(table, self.lake.partitions(table))

    def _try(self, what: str, read: Callable[[], object]) -> None:
        try:
            read()
        except Exception as error:  # noqa: BLE001 - any error of a reader is a complaint
            self.complaints.append(f"a reader of {what} met {type(error).__name__}: {str(error)[:300]}")

    def _now(self, table: str) -> None:
        snapshot = self.lake.snapshot_id(table)
        content = self._content(table, None)
        self._compare(table, content)
        self._never_less(table, content)
        moment = machine_clock()
        if snapshot is None or self.lake.snapshot_id(table) != snapshot:
            return
        known = self.seen.setdefault(snapshot, Seen(table, snapshot, content, moment, moment))
        known.last = moment
        if known.content != content:
            self.complaints.append(f"{table}: the current snapshot {snapshot} has other content than before")

    def _never_less(self, table: str, partitions: Collection[str]) -> None:
        had = self.had.setdefault(table, set())
        if gone := had.difference(partitions):
            self.complaints.append(f"a reader of {table} had seen {sorted(gone)}, and they were not there")
        had.update(partitions)

    def _slowly(self, table: str, stop: threading.Event) -> None:
        """A stream that is opened now and read later has the content of when it was opened."""
        stream = self.lake.scan(table)
        stop.wait(self.luck.uniform(0, self.kept.total_seconds() / 2))
        self.counts["slow"] += 1
        self._compare(table, content_of(self.lake.tables[table], stream.read_all()))

    def _again(self, seen: Seen) -> None:
        as_of = seen.first if seen.last - seen.first > SETTLED and self.luck.random() < 0.5 else seen.snapshot
        age = machine_clock() - seen.last
        what = f"{seen.table} as of {as_of}, current {age.total_seconds():.1f} s ago"

        def read() -> None:
            try:
                content = self._content(seen.table, as_of)
            except PerennialError as error:
                if error.reason_code != "snapshot_gone":
                    raise
                del self.seen[seen.snapshot]
                self.counts["gone"] += 1
                if age < self.kept - SETTLED:
                    self.complaints.append(f"{what}: not kept for {self.kept.total_seconds():.0f} s: {error}")
                return
            self.counts["again"] += 1
            if content != seen.content:
                self.complaints.append(f"{what}: {_different(seen.content, content)}")

        self._try(what, read)

    def _content(self, table: str, as_of: int | datetime | None) -> Content:
        self.counts["reads"] += 1
        if self.luck.random() < 0.5:
            rows = self.lake.scan(table, as_of=as_of).read_all()
        else:
            at = {table: as_of} if isinstance(as_of, int) else as_of
            rows = self.lake.sql(f"SELECT * FROM {table}", as_of=at)
        return content_of(self.lake.tables[table], rows)

    def _compare(self, table: str, content: Content) -> None:
        for partition, found in content.items():
            clean = self.clean[table].get(partition)
            # A day's coverage row changes with the day's tables; the number of its rows does not.
            rows_only = table == COVERAGE.name and clean and clean.split(":")[0] == found.split(":")[0]
            if clean is not None and found != clean and not rows_only:
                self.complaints.append(f"a reader of {table} saw {partition} as {found}, whole is {clean}")


def _different(before: Content, now: Content) -> str:
    wrong = [p for p in sorted({*before, *now}) if before.get(p) != now.get(p)]
    return f"{wrong[0]} was {before.get(wrong[0])} and is {now.get(wrong[0])} ({len(wrong)} partitions)"


def main() -> None:
    clean, kept = json.loads(Path(sys.argv[1]).read_text()), timedelta(seconds=float(sys.argv[2]))
    lake = open_lake(load_settings())
    readers = [Reader(lake, clean, kept, random.Random(f"{sys.argv[3]} {n}")) for n in range(THREADS + 1)]
    run_until_stopped(readers[0].watch, *(reader.read for reader in readers[1:]))
    report(sum((r.counts for r in readers), Counter()), [c for r in readers for c in r.complaints])


if __name__ == "__main__":
    main()
