"""Keeping a table small: compact what is closed, expire what is old, delete what nothing refers to."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from domain.shared.error import InfrastructureError, InvalidInput
from domain.shared.table import Table
from resources.lake.catalog import catalog_errors
from resources.lake.content_hash import versions_of
from resources.lake.error import CommitConflict, DataCorrupt, DataUnavailable, storage_errors
from resources.lake.file_index import FileEntry
from resources.lake.frame import ordered
from resources.lake.view import View
from resources.lake.write import Writer

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

MANY_FILES = 32
"""Files at which an open month or a category is rewritten."""
MAX_ROWS = 4_000_000
"""Rows held in memory by one compaction."""

ORPHAN_AGE = timedelta(days=1)
"""A younger file may be part of a commit under way."""

log = logging.getLogger(__name__)


class Upkeep(TypedDict):
    """What is done to a table. `now` is the machine's real time."""

    now: datetime
    compact_before: str | None
    """A month or a day: months that end before it are closed and become one file each."""
    keep_snapshots: NotRequired[Collection[int]]
    expire_after: NotRequired[timedelta]
    """How long a snapshot stays after another replaced it; by default the table's `history`."""
    orphan_age: NotRequired[timedelta]


@dataclass
class MaintenanceReport:
    table: str
    compacted_files: int = 0
    expired_snapshots: int = 0
    deleted_files: int = 0
    skipped: list[str] = field(default_factory=list)
    """Of each group of files that was not compacted, which file could not be read, and why."""


@dataclass(frozen=True)
class Maintenance:
    writer: Writer

    def run(self, table: Table, how: Upkeep) -> MaintenanceReport:
        now, expire_after = how["now"], how.get("expire_after", table.history)
        if now.tzinfo is None:
            raise InvalidInput("the moment of maintenance has no time zone")
        report = MaintenanceReport(table.name)
        if self.writer.views.of(table).metadata is None:
            return report
        with storage_errors(table.name), catalog_errors(table.name):
            self._compact(table, how["compact_before"], report)
            # The lock keeps our own writers from adding a file between listing and deleting; a writer that
            # knows no locks is protected by the age below which no file is deleted.
            with self.writer.locks.lease(table.name):
                stored = self.writer.catalog.load(table.name)
                report.expired_snapshots = _expire(stored, now - expire_after, how.get("keep_snapshots", ()))
            with self.writer.locks.lease(table.name):
                stored = self.writer.catalog.load(table.name)
                report.deleted_files = self._delete_orphans(stored, now - how.get("orphan_age", ORPHAN_AGE))
        return report

    def _compact(self, table: Table, compact_before: str | None, report: MaintenanceReport) -> None:
        for group in sorted({f.group for f in self.writer.views.of(table).files}, key=str):
            # One group per lock: writers of the table wait for one month's rewrite, not for all.
            with self.writer.locks.lease(table.name):
                view = self.writer.views.of(table)
                files = [f for f in view.files if f.group == group]
                if not _worth_it(table, files, group, compact_before):
                    continue
                try:
                    self._rewrite(view, files)
                except (DataCorrupt, DataUnavailable) as error:
                    report.skipped.append(": ".join([error.message, *getattr(error, "files", ())]))
                    log.warning("%s: %s; these files are not compacted", table.name, error)
                except CommitConflict as error:
                    log.warning("%s; compaction is left to the next maintenance", error)
                else:
                    report.compacted_files += len(files)

    def _rewrite(self, view: View, files: Sequence[FileEntry]) -> None:
        partitions = sorted({p for f in files for p in (f.certain_partitions(view.table) or ())})
        frame = ordered(view.table, self.writer.engine.read(view, files))
        versions = versions_of(view.table, [frame])
        known = self.writer.versions.read_versions(view, [p for p in partitions if p in versions])
        if different := [p for p, v in known.items() if v != versions[p]]:
            raise InfrastructureError(
                f"{view.table.name}: compaction would change {different}; nothing was written"
            )
        self.writer.rewrite(view, frame, files)
        self.writer.versions.remember(self.writer.views.of(view.table), versions)

    def _delete_orphans(self, stored: IcebergTable, older_than: datetime) -> int:
        store = self.writer.engine.store
        referenced = {store.sql_path(uri) for uri in _referenced(stored)}
        orphans = [
            file.uri
            for file in store.list(stored.location())
            if file.modified < older_than and store.sql_path(file.uri) not in referenced
        ]
        for uri in orphans:
            store.delete(uri)
        return len(orphans)


def _worth_it(
    table: Table, files: Sequence[FileEntry], group: str | None, compact_before: str | None
) -> bool:
    """Whether to rewrite a group. Partitions of tables with control sums are files of their own already."""
    if table.sums or len(files) < 2 or sum(f.rows for f in files) > MAX_ROWS:
        return False
    closed = (
        table.partition_kind == "day"
        and group is not None
        and compact_before is not None
        and group < compact_before[:7]
    )
    return closed or len(files) >= MANY_FILES


def _expire(stored: IcebergTable, older_than: datetime, keep: Collection[int]) -> int:
    kept = {*keep, *(ref.snapshot_id for ref in stored.metadata.refs.values())}
    limit = int(older_than.timestamp() * 1000)
    line = sorted(stored.metadata.snapshots, key=lambda s: (s.sequence_number or 0, s.timestamp_ms))
    # A snapshot's age counts from when the next replaced it: until then it was current.
    old = [
        s.snapshot_id
        for s, following in pairwise(line)
        if following.timestamp_ms < limit and s.snapshot_id not in kept
    ]
    if old:
        stored.maintenance.expire_snapshots().by_ids(old).commit()
    return len(old)


def _referenced(stored: IcebergTable) -> set[str]:
    """Every file that the table's metadata still leads to."""
    found = {stored.metadata_location, *(entry.metadata_file for entry in stored.metadata.metadata_log)}
    manifests: dict[str, Any] = {}
    for snapshot in stored.metadata.snapshots:
        found.add(snapshot.manifest_list)
        manifests |= {m.manifest_path: m for m in snapshot.manifests(stored.io)}
    for path, manifest in manifests.items():
        found.add(path)
        entries = manifest.fetch_manifest_entry(stored.io, discard_deleted=True)
        found.update(entry.data_file.file_path for entry in entries)
    found.update(s.statistics_path for s in stored.metadata.statistics)
    return found
