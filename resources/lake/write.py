"""Changing a table: replace and merge, as a read, a computed change and one commit under the table's lock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from domain.shared.error import InvalidInput
from domain.shared.table import ABSENT, Table, Version
from resources.lake.catalog import Catalog, catalog_errors
from resources.lake.commit import import_iceberg, is_imported
from resources.lake.content_hash import versions_of
from resources.lake.data_files import staged_files
from resources.lake.desk import Staged
from resources.lake.engine import Engine, quoted
from resources.lake.error import CommitConflict, DataCorrupt, ForeignWarehouse, storage_errors
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.frame import check_partitions, conform, partitions_of, select_partitions
from resources.lake.layout import group_of, sql_filter
from resources.lake.locks import Locks
from resources.lake.order import ordered
from resources.lake.state import added_columns
from resources.lake.versions import VersionReader
from resources.lake.view import View, Views

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

_ATTEMPTS = 10

log = logging.getLogger(__name__)

Guard = Callable[[], None]


@dataclass(frozen=True)
class Commit:
    """What a write did. Identical content makes no snapshot: then `changed` is False."""

    snapshot_id: int | None
    parent_id: int | None
    versions: dict[str, Version]
    changed: bool


@dataclass(frozen=True)
class Rows:
    """The rows some partitions shall have from now on; a partition without rows is emptied."""

    partitions: tuple[str, ...]
    frame: pa.Table
    made: Mapping[str, Version]
    """What the frame is, by partition."""

    @classmethod
    def of(cls, table: Table, partitions: tuple[str, ...], frame: pa.Table) -> Rows:
        return cls(partitions, frame, versions_of(table, [frame]))


class _Unprepared(Exception):
    """There is something to write, and this process has not imported what writes it."""


@dataclass(frozen=True)
class Writer:
    catalog: Catalog
    engine: Engine
    views: Views
    index: FileIndex
    versions: VersionReader
    locks: Locks

    def replace(
        self,
        table: Table,
        partitions: Sequence[str],
        data: pa.Table,
        *,
        allow_empty: bool,
        guard: Guard | None,
    ) -> Commit:
        frame = conform(table, data)
        wanted = tuple(sorted(set(partitions)))
        # Once, before the lock: it depends on nothing that is stored.
        rows = Rows.of(table, wanted, frame)
        check_partitions(table, rows.made, wanted)
        if not allow_empty:
            _refuse_empty(table, wanted, rows.made)
        return self._change(table, lambda _: rows, guard)

    def room(self, table: Table) -> View:
        """The table as it is, made or given its new columns first: for who writes files before a commit."""
        view = self.views.of(table)
        if view.state is None or added_columns(table, view.state):
            with storage_errors(table.name), self.locks.lease(table.name), catalog_errors(table.name):
                self._stored(self.views.of(table))
            view = self.views.of(table)
        return view

    def put(self, table: Table, staged: Sequence[Staged], guard: Guard | None) -> Commit:
        """Make staged files the whole content of their partitions, in one snapshot. A partition that has the
        version already keeps its own file."""
        with storage_errors(table.name):
            import_iceberg()
            with self.locks.lease(table.name):
                for _ in range(_ATTEMPTS):
                    try:
                        return self._put(self.views.of(table), staged, guard)
                    except CommitConflict as error:
                        conflict = error
                raise conflict

    def _put(self, view: View, staged: Sequence[Staged], guard: Guard | None) -> Commit:
        table, wanted = view.table, {s.partition: s.version for s in staged}
        stored = self.versions.read_versions(view, sorted(wanted))
        changed = {p for p in wanted if wanted[p] != stored[p]}
        current = None if view.state is None else view.state.current
        before = None if current is None else current.id
        for same in (s for s in staged if s.partition not in changed or not s.num_rows):
            self.engine.store.delete(same.path)
        if not changed:
            return Commit(before, None if current is None else current.parent_id, wanted, False)
        victims = [] if view.listing is None else view.listing.holding(table, changed)
        if any(not set(f.certain_partitions(table) or ("?",)) <= changed for f in victims):
            raise InvalidInput(f"{table.name}: files of another layout hold {sorted(changed)} and others")
        with catalog_errors(table.name):
            stored_table = self._stored(view)
            chosen = [s for s in staged if s.partition in changed and s.num_rows]
            add = staged_files(stored_table, table, [(s.path, s.partition) for s in chosen])
            snapshot_id = self._swap(stored_table, view, add, victims, guard, {}, again=True)
        self.versions.remember(self.views.of(table), {p: wanted[p] for p in changed})
        return Commit(snapshot_id, before, wanted, True)

    def merge(self, table: Table, data: pa.Table, guard: Guard | None) -> Commit:
        frame = conform(table, data)
        _refuse_empty(table, (), partitions_of(table, frame))
        return self._change(table, lambda view: self._merged(view, frame), guard)

    def _merged(self, view: View, frame: pa.Table) -> Rows:
        """The rows of the touched partitions after the incoming rows took the place of equal keys."""
        table = view.table
        touched = set(partitions_of(table, frame))
        if not set(table.partition_columns) <= set(table.key):
            touched |= self._partitions_with_keys(view, frame)  # a row may move to another partition
        files = [] if view.listing is None else view.listing.holding(table, touched)
        stored = self.engine.read(view, files, sql_filter(table, touched))
        same = " AND ".join(f"s.{quoted(k)} IS NOT DISTINCT FROM i.{quoted(k)}" for k in table.key)
        with self.engine.connect() as connection:
            connection.register("stored", stored)
            connection.register("incoming", frame)
            query = f"SELECT * FROM stored AS s ANTI JOIN incoming AS i ON {same}"
            kept = connection.sql(query).to_arrow_table()
        whole = pa.concat_tables([kept.cast(frame.schema), frame])
        return Rows.of(table, tuple(sorted(touched)), whole)

    def _partitions_with_keys(self, view: View, frame: pa.Table) -> set[str]:
        keys = ", ".join(quoted(k) for k in view.table.key)
        with self.engine.connect() as connection, self.engine.explained(view.table, view.files):
            connection.register("incoming", frame.select(list(view.table.key)))
            rows = self.engine.relation(connection, view)
            query = f"SELECT * FROM ({rows}) SEMI JOIN incoming USING ({keys})"
            return set(partitions_of(view.table, connection.sql(query).to_arrow_table()))

    def _change(self, table: Table, plan: Callable[[View], Rows], guard: Guard | None) -> Commit:
        with storage_errors(table.name):
            try:
                return self._locked(table, plan, guard)
            except _Unprepared:
                import_iceberg()  # others need not wait for it
            return self._locked(table, plan, guard)

    def _locked(self, table: Table, plan: Callable[[View], Rows], guard: Guard | None) -> Commit:
        with self.locks.lease(table.name):
            for _ in range(_ATTEMPTS):
                view = self.views.of(table)
                try:
                    return self._apply(view, plan(view), guard)
                except CommitConflict as error:
                    conflict = error  # a writer that knows no locks (Trino) came first: compute anew
            raise conflict

    def _apply(self, view: View, rows: Rows, guard: Guard | None) -> Commit:
        table = view.table
        wanted = {p: rows.made.get(p, ABSENT) for p in rows.partitions}
        stored = self.versions.read_versions(view, rows.partitions)
        changed = [p for p in rows.partitions if wanted[p] != stored[p]]
        current = None if view.state is None else view.state.current
        if not changed:
            return Commit(
                None if current is None else current.id,
                None if current is None else current.parent_id,
                wanted,
                False,
            )
        if not is_imported():
            raise _Unprepared
        victims = [] if view.listing is None else view.listing.holding(table, changed)
        kept, corrupt = self._other_rows(view, victims, changed)
        if corrupt:
            _warn_lost(table, corrupt, changed)
        whole = set(rows.made) <= set(changed)
        new = rows.frame if whole else select_partitions(table, rows.frame, changed)
        if kept.num_rows:
            new = pa.concat_tables([kept, new])
        snapshot_id = self.swap(view, ordered(table, new), victims, guard)
        self.versions.remember(self.views.of(table), {p: wanted[p] for p in changed})
        return Commit(snapshot_id, None if current is None else current.id, wanted, True)

    def _other_rows(
        self, view: View, victims: Sequence[FileEntry], changed: Collection[str]
    ) -> tuple[pa.Table, list[FileEntry]]:
        """The rows of files to drop that must live on, and the files whose rows are lost anyhow."""
        only = set(changed)
        shared = [f for f in victims if not set(f.certain_partitions(view.table) or ("?",)) <= only]
        where = sql_filter(view.table, changed, negate=True)
        try:
            return self.engine.read(view, shared, where), []
        except DataCorrupt as error:
            corrupt = [f for f in shared if f.path in set(error.files)]
            intact = [f for f in shared if f not in corrupt]
            return self.engine.read(view, intact, where), corrupt

    def swap(self, view: View, frame: pa.Table, victims: Sequence[FileEntry], guard: Guard | None) -> int:
        """Write the rows, drop the victims, in one snapshot on top of the view's. The lock is held."""
        with catalog_errors(view.table.name):
            stored = self._stored(view)
            return self._commit(stored, view, frame, victims, guard)

    def _stored(self, view: View) -> IcebergTable:
        """The Iceberg table as the view saw it, created or given its new columns first."""
        table = view.table
        if view.state is None:
            self._refuse_foreign_files(table)
            return self.catalog.create(table)
        stored = self.catalog.load(table.name)
        if stored.metadata_location != view.state.location:
            raise CommitConflict(f"{table.name}: changed by another writer")
        if added := added_columns(table, view.state):
            return self.catalog.add_columns(stored, table, added)
        return stored

    def _refuse_foreign_files(self, table: Table) -> None:
        """A new catalogue over an old warehouse would delete its files as orphans within a day."""
        location = self.catalog.location(table)
        if (found := next(iter(self.engine.store.list(f"{location}/data")), None)) is not None:
            raise ForeignWarehouse(
                f"{table.name}: {location} holds data files that this catalogue does not know, such as "
                f"{found.uri.rpartition('/')[2]}; nothing was written",
                remedy="use the catalogue of this warehouse (restore it from a backup, or set "
                "PERENNIAL_CATALOG_URL), or give this environment a warehouse of its own "
                "(PERENNIAL_WAREHOUSE); if that catalogue is lost for good, delete the warehouse",
            )

    def _commit(
        self,
        stored: IcebergTable,
        view: View,
        frame: pa.Table,
        victims: Sequence[FileEntry],
        guard: Guard | None,
    ) -> int:
        from resources.lake import commit

        return self._swap(
            stored,
            view,
            commit.write_data_files(stored, frame),
            victims,
            guard,
            _days_by_group(view.table, frame),
        )

    def _swap(
        self,
        stored: IcebergTable,
        view: View,
        add: Sequence[Any],
        victims: Sequence[FileEntry],
        guard: Guard | None,
        exact: Mapping[str | None, tuple[str, ...]],
        *,
        again: bool = False,
    ) -> int:
        from resources.lake import commit
        from resources.lake.iceberg_read import file_entry

        table = view.table
        drop = commit.find_data_files(stored, [f.path for f in victims])
        try:
            if guard is not None:
                guard()
        except BaseException:
            commit.discard(stored, add)
            raise
        try:
            snapshot_id = commit.swap_files(stored, add=add, drop=drop)
        except CommitConflict:
            if not again:
                commit.discard(
                    stored, add
                )  # surely not committed; any other failure may hide a commit that was
            raise
        gone = {f.path for f in victims}
        groups = [file_entry(table, stored, f).group for f in add]
        fresh = [
            file_entry(table, stored, f, exact.get(group) if groups.count(group) == 1 else None)
            for f, group in zip(add, groups, strict=True)
        ]
        kept = tuple(f for f in view.files if f.path not in gone)
        if view.listing is None or not view.listing.has_deletes:  # else it is read anew: deletes may be spent
            self.index.put(table.name, FileList(snapshot_id, (*kept, *fresh)))
        return snapshot_id


def _days_by_group(table: Table, frame: pa.Table) -> dict[str | None, tuple[str, ...]]:
    if table.partition_kind != "day":
        return {}
    groups: dict[str | None, list[str]] = {}
    for day in partitions_of(table, frame):
        groups.setdefault(group_of(table, day), []).append(day)
    return {group: tuple(days) for group, days in groups.items()}


def _refuse_empty(table: Table, partitions: Sequence[str], present: Collection[str]) -> None:
    missing = [p for p in partitions if p not in present]
    if missing or not present:
        named = f" {', '.join(missing[:5])}" if missing else ""
        raise InvalidInput(
            f"{table.name}: no rows for{named or ' anything'}: an empty frame would delete what is there",
            reason_code="empty_frame",
            remedy="say allow_empty if the partition shall really be emptied",
        )


def _warn_lost(table: Table, corrupt: Sequence[FileEntry], changed: Collection[str]) -> None:
    lost = sorted({p for f in corrupt for p in f.possible_partitions(table)} - set(changed))
    log.warning(
        "%s: dropped %d unreadable data file(s); partitions lost with them that must be fetched again: %s",
        table.name,
        len(corrupt),
        ", ".join(lost) or "none",
    )
