"""What a pass observes of the carbon domain, as plain values: input of the plan and of health."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from domain.carbon.catalogue import Catalogue
from domain.carbon.feeds import NEVER_READ, FeedChange, FeedRead
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, REPORT_MODULES, REPORTS, UNITS
from domain.shared.state import NOTHING, PartitionState


@dataclass(frozen=True)
class CurrentUpload:
    """An accepted upload, with the years in which it counts."""

    id: int
    kind: str
    topic: str
    institution: str
    source: str
    years: tuple[int, ...]
    pipeline_id: str
    name: str = ""
    rows: int = 0
    taken: int = 0
    """How many of its rows are good."""

    @property
    def left_out(self) -> int:
        return self.rows - self.taken


@dataclass(frozen=True)
class Observed:
    states: Mapping[tuple[str, str], PartitionState] = field(default_factory=dict)
    """By (table, partition); what is not there has none."""
    uploads: Sequence[CurrentUpload] = ()
    """Oldest first."""
    factor_digests: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """By year and type, of years whose factors can be read."""
    locked: Mapping[int, str] = field(default_factory=dict)
    """Locked years, and why they are."""
    work: Mapping[str, str] = field(default_factory=dict)
    """By key, the status of work that is not done."""
    refused: Collection[str] = ()
    """Keys whose work the ledger refuses: it failed or was cancelled, and nothing changed since."""
    feed_changes: Sequence[FeedChange] = ()
    """The newest versions that applications reported."""
    feed_reads: Mapping[str, FeedRead] = field(default_factory=dict)
    """By key, such as `pulled_units:2025`, what was read of it last."""
    silent: Mapping[str, datetime | None] = field(default_factory=dict)
    """Applications that did not answer the last poll: when they answered last, if ever."""
    now: datetime | None = None
    """When it was observed; without it, nothing has waited for long."""
    not_indexed: int = 0
    """Staged uploads that the ledger lacks; counted where anything is about to be imported."""
    feeds: str = ""
    """A digest of the addresses and tokens of these applications."""

    @cached_property
    def _by_topic(self) -> Mapping[tuple[str, str], Sequence[CurrentUpload]]:
        found: dict[tuple[str, str], list[CurrentUpload]] = defaultdict(list)
        for one in sorted(self.uploads, key=lambda u: u.id):
            found[one.kind, one.topic].append(one)
        return found

    @cached_property
    def known_uploads(self) -> Mapping[int, CurrentUpload]:
        return {one.id: one for one in self.uploads}

    def newest_uploads(self, kind: str, topic: str, year: int) -> list[CurrentUpload]:
        """Return the newest upload of each scope that counts in the year, oldest first.

        Entries of files and of applications are added; an institution has one tree of units.
        """
        counting = [u for u in self._by_topic.get((kind, topic), ()) if year in u.years]
        newest = {(u.institution, "" if kind == "units" else u.source): u for u in counting}
        return sorted(newest.values(), key=lambda u: u.id)

    def feed_read_of(self, key: str) -> FeedRead:
        return self.feed_reads.get(key, NEVER_READ)

    def state(self, table: str, partition: str) -> PartitionState:
        return self.states.get((table, partition), NOTHING)

    def partitions(self, table: str) -> list[str]:
        return sorted(p for t, p in self.states if t == table)

    def years_of(self, kind: str) -> list[int]:
        table = {"units": UNITS.table, "factors": FACTORS.table}[kind]
        years = {y for u in self.uploads if u.kind == kind for y in u.years}
        return sorted(years | {int(p) for p in self.partitions(table)})

    def entry_partitions(self, catalogue: Catalogue) -> list[str]:
        """Return the partitions that uploads fill, and those that are or were there, of known types."""
        filled = {f"{u.topic}|{y}" for u in self.uploads if u.kind == "data" for y in u.years}
        found = filled.union(self.partitions(DATA_ENTRIES.table))
        return sorted(p for p in found if p.split("|", 1)[0] in catalogue.types)

    def report_years(self) -> list[int]:
        """Return the years that have anything to report."""
        tables = (EMISSIONS.table, REPORT_MODULES.table)
        years = {p.rsplit("|", 1)[1] for t in tables for p in self.partitions(t)}
        return sorted(int(y) for y in years.union(self.partitions(REPORTS.table)))
