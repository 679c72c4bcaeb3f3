"""A reader of the market during a round in which the source is well.

At any moment each day is absent or has the content of the clean home, and a day that was there stays.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from domain.market.tables import COVERAGE
from domain.shared.table import Table
from resources.lake.client import Lake
from tests.chaos.companions import complaining
from tests.chaos.rounds import Findings

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
class MarketReader:
    """One reader; each thread needs its own, as it compares with what it has read before."""

    lake: Lake
    clean: Mapping[str, Content]
    luck: random.Random
    found: Findings
    had: dict[str, set[str]] = field(default_factory=dict)

    def read(self, stop: threading.Event) -> None:
        while not stop.wait(self.luck.uniform(0, PAUSE)):
            table = self.luck.choice(sorted(self.clean))
            with complaining(self.found, f"a reader of {table}"):
                self._read(table)

    def watch(self, stop: threading.Event) -> None:
        """Read only which partitions there are: cheap enough to meet the shortest hole."""
        while not stop.wait(WATCH_PAUSE):
            table = self.luck.choice(sorted(self.clean))
            with complaining(self.found, f"a reader of the days of {table}"):
                self._never_less(table, self.lake.partitions(table))

    def _read(self, table: str) -> None:
        self.found.count(reads=1)
        query = self.lake.query if self.luck.random() < 0.5 else self.lake.sql
        content = content_of(self.lake.tables[table], query(f"SELECT * FROM {table}"))
        self._compare(table, content)
        self._never_less(table, content)

    def _never_less(self, table: str, partitions: Collection[str]) -> None:
        had = self.had.setdefault(table, set())
        if gone := had.difference(partitions):
            self.found.complaints.append(f"a reader of {table} had read {sorted(gone)}; they are gone")
        had.update(partitions)

    def _compare(self, table: str, content: Content) -> None:
        for partition, found in content.items():
            clean = self.clean[table].get(partition)
            # A day's coverage row changes with the day's tables; the number of its rows does not.
            rows_only = table == COVERAGE.name and clean and clean.split(":")[0] == found.split(":")[0]
            if clean is not None and found != clean and not rows_only:
                self.found.complaints.append(f"a reader of {table} read {partition} as {found}, not {clean}")
