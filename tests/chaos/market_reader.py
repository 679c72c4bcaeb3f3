"""A reader of the market: as the tables are now, and as they were at snapshots it has read before.

The source is well, so at any moment each day is absent or has the content of the clean home, and a day that
was there stays. A snapshot stays readable, with the same content, for a while after it was the current one;
later it may be gone, and the error must say so.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa

from domain.market.tables import COVERAGE
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError
from domain.shared.table import Table
from resources.lake.client import Lake
from tests.chaos.companions import complaining
from tests.chaos.rounds import Findings

SETTLED = timedelta(seconds=5)
"""After so long no commit under way can still belong to an earlier moment."""
PAUSE, WATCH_PAUSE = 0.05, 0.005

Content = dict[str, str]
"""By partition, its rows and a hash of them."""


def content_of(table: Table, rows: pa.Table) -> Content:
    key = " || '|' || ".join(f"CAST({name} AS VARCHAR)" for name in table.partition_columns) or "'ALL'"
    found = rows.select(table.schema.names).cast(table.schema)  # noqa: F841 - named in the query
    query = (
        f"SELECT {key}, count(*) || ':' || bit_xor(hash(found)) FROM found GROUP BY ALL HAVING count(*) > 0"
    )
    return dict(duckdb.connect().sql(query).fetchall())


def clean_contents(lake: Lake) -> dict[str, Content]:
    """The content of every market table of a clean home."""
    tables = [table for name, table in lake.tables.items() if name.startswith("market.")]
    return {table.name: content_of(table, lake.query(f"SELECT * FROM {table.name}")) for table in tables}


@dataclass
class Seen:
    """The content of a snapshot, and when it was last the current one."""

    table: str
    snapshot: int
    content: Content
    last: datetime


@dataclass
class MarketReader:
    """One reader; each thread needs its own, as it compares with what it has read before."""

    lake: Lake
    clean: Mapping[str, Content]
    kept: timedelta
    luck: random.Random
    found: Findings
    seen: dict[int, Seen] = field(default_factory=dict)
    had: dict[str, set[str]] = field(default_factory=dict)

    def read(self, stop: threading.Event) -> None:
        """Read a table as it is now, then a snapshot from earlier."""
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            table = self.luck.choice(sorted(self.clean))
            with complaining(self.found, f"a reader of {table}"):
                self._read_now(table)
            if self.seen:
                seen = self.luck.choice(list(self.seen.values()))
                with complaining(self.found, f"a reader of {seen.table} as of {seen.snapshot}"):
                    self._read_again(seen)

    def watch(self, stop: threading.Event) -> None:
        """Read only which partitions there are: cheap enough to meet the shortest hole."""
        while not stop.wait(WATCH_PAUSE):
            table = self.luck.choice(sorted(self.clean))
            with complaining(self.found, f"a reader of the days of {table}"):
                self._never_less(table, self.lake.partitions(table))

    def _read_now(self, table: str) -> None:
        snapshot = self.lake.snapshot_id(table)
        content = self._content(table, None)
        self._compare(table, content)
        self._never_less(table, content)
        if snapshot is None or self.lake.snapshot_id(table) != snapshot:
            return
        known = self.seen.setdefault(snapshot, Seen(table, snapshot, content, machine_clock()))
        known.last = machine_clock()
        if known.content != content:
            self.found.complaints.append(f"{table}: snapshot {snapshot} has other content than before")

    def _never_less(self, table: str, partitions: Collection[str]) -> None:
        had = self.had.setdefault(table, set())
        if gone := had.difference(partitions):
            self.found.complaints.append(f"a reader of {table} had read {sorted(gone)}; they are gone")
        had.update(partitions)

    def _read_again(self, seen: Seen) -> None:
        age = machine_clock() - seen.last
        try:
            content = self._content(seen.table, seen.snapshot)
        except PerennialError as error:
            # What goes while it is read names files that are lost.
            if error.reason_code != "snapshot_gone" and age < self.kept - SETTLED:
                raise
            del self.seen[seen.snapshot]
            self.found.count(gone=1)
            if age < self.kept - SETTLED:
                self.found.complaints.append(f"{seen.table}: snapshot not kept for {self.kept}: {error}")
            return
        if content != seen.content:
            self.found.complaints.append(
                f"{seen.table} as of {seen.snapshot} is {content}, not {seen.content}"
            )

    def _content(self, table: str, snapshot: int | None) -> Content:
        self.found.count(reads=1)
        at = None if snapshot is None else {table: snapshot}
        read = self.lake.query if self.luck.random() < 0.5 else self.lake.sql
        return content_of(self.lake.tables[table], read(f"SELECT * FROM {table}", as_of=at))

    def _compare(self, table: str, content: Content) -> None:
        for partition, found in content.items():
            clean = self.clean[table].get(partition)
            # A day's coverage row changes with the day's tables; the number of its rows does not.
            rows_only = table == COVERAGE.name and clean and clean.split(":")[0] == found.split(":")[0]
            if clean is not None and found != clean and not rows_only:
                self.found.complaints.append(f"a reader of {table} read {partition} as {found}, not {clean}")
