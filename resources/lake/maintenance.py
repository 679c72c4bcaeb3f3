"""Keeping a table small: compact what is closed, expire what is old, delete what nothing refers to."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from domain.shared.error import InfrastructureError, InvalidInput
from domain.shared.table import Table
from resources.lake.catalog import catalog_errors
from resources.lake.content_hash import versions_of
from resources.lake.error import CommitConflict, DataCorrupt, DataUnavailable, storage_errors
from resources.lake.file_index import FileEntry
from resources.lake.frame import ordered
from resources.lake.view import View

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

    from resources.lake.write import Writer

MANY_FILES = 32
"""An open month or a category is rewritten only when it has become this crumbly."""
MAX_ROWS = 4_000_000
"""Rows held in memory by one compaction."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MaintenanceReport:
    table: str
    compacted_files: int = 0
    written_files: int = 0
    expired_snapshots: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    corrupt_files: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()
    """Of each group that was left for it, which file could not be read, and why."""


@dataclass(frozen=True)
class Maintenance:
    writer: Writer

    def run(
        self,
        table: Table,
        *,
        now: datetime,
        compact_before: str | None,
        keep_snapshots: Collection[int],
        expire_after: timedelta,
        orphan_age: timedelta,
    ) -> MaintenanceReport:
        if now.tzinfo is None:
            raise InvalidInput("the moment of maintenance has no time zone")
        report = MaintenanceReport(table.name)
        if self.writer.views.of(table).state is None:
            return report
        with storage_errors(table.name), catalog_errors(table.name):
            report = self._compact(table, compact_before, report)
            # The lock keeps our own writers from adding a file between listing and deleting; a writer
            # that knows no locks is protected by the age below which no file is touched.
            with self.writer.locks.lease(table.name):
                stored = self.writer.catalog.load(table.name)
                report = replace(
                    report, expired_snapshots=_expire(stored, now - expire_after, keep_snapshots)
                )
            with self.writer.locks.lease(table.name):
                return self._delete_orphans(self.writer.catalog.load(table.name), now - orphan_age, report)

    def _compact(
        self, table: Table, compact_before: str | None, report: MaintenanceReport
    ) -> MaintenanceReport:
        corrupt: list[str] = []
        unavailable: list[str] = []
        for group in sorted({f.group for f in self.writer.views.of(table).files}, key=str):
            # One group per lock: writers of the table wait for one month's rewrite, not for all.
            with self.writer.locks.lease(table.name):
                view = self.writer.views.of(table)
                files = [f for f in view.files if f.group == group]
                if not _worth_it(table, files, group, compact_before):
                    continue
                try:
                    written = self._rewrite(view, files)
                except DataCorrupt as error:
                    corrupt += error.files
                    log.warning("%s; its month is not compacted", error)
                except DataUnavailable as error:
                    unavailable.append(error.message)
                    log.warning("%s: %s; its month is not compacted", table.name, error)
                except CommitConflict as error:
                    log.warning("%s; compaction is left to the next maintenance", error)
                else:
                    report = replace(
                        report,
                        compacted_files=report.compacted_files + len(files),
                        written_files=report.written_files + written,
                    )
        return replace(report, corrupt_files=tuple(corrupt), unavailable=tuple(unavailable))

    def _rewrite(self, view: View, files: Sequence[FileEntry]) -> int:
        partitions = sorted({p for f in files for p in (f.certain_partitions(view.table) or ())})
        frame = ordered(view.table, self.writer.engine.read(view, files))
        before = {f.path for f in files}
        versions = versions_of(view.table, [frame])
        known = self.writer.versions.read_versions(view, [p for p in partitions if p in versions])
        if different := [p for p, v in known.items() if v != versions[p]]:
            raise InfrastructureError(
                f"{view.table.name}: compaction would change {different}; nothing was written"
            )
        self.writer.rewrite(view, frame, files)
        after = self.writer.views.of(view.table)
        self.writer.versions.remember(after, versions)
        return len([f for f in after.files if f.path not in {v.path for v in view.files} | before])

    def _delete_orphans(
        self, stored: IcebergTable, older_than: datetime, report: MaintenanceReport
    ) -> MaintenanceReport:
        store = self.writer.engine.store
        referenced = {store.sql_path(uri) for uri in _referenced(stored)}
        count = size = 0
        for file in store.list(stored.location()):
            if file.modified < older_than and store.sql_path(file.uri) not in referenced:
                store.delete(file.uri)
                count, size = count + 1, size + file.size
        return replace(report, deleted_files=count, deleted_bytes=size)


def _worth_it(
    table: Table, files: Sequence[FileEntry], group: str | None, compact_before: str | None
) -> bool:
    if len(files) < 2 or sum(f.rows for f in files) > MAX_ROWS:
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
    # A snapshot's age counts from when the next took its place: until then it was what everybody read.
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
    read: set[str] = set()
    for snapshot in stored.metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(stored.io):
            if manifest.manifest_path in read:
                continue
            read.add(manifest.manifest_path)
            found.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(stored.io, discard_deleted=True):
                found.add(entry.data_file.file_path)
    found.update(s.statistics_path for s in stored.metadata.statistics)
    return found
