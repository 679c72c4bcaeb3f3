"""Feeds: polling applications for changes, and reading changed entries as uploads.

A poll notes which scopes changed (`poll_feeds`); the plan decides which of them to read, and a run reads
each scope whole (`read_feed_entries`). Good entries are imported, wrong ones are listed.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from domain.carbon.feeds import ORIGINS, FeedChange, FeedRead, changes_to_read
from domain.carbon.jobs import API_INGEST, FEED_ENTRIES
from domain.carbon.tables import UNITS, year_of
from domain.shared.error import InvalidInput, PerennialError, TransientResourceError
from domain.shared.hashing import digest
from domain.shared.names import LONGEST
from domain.shared.tabular.problems import FileRefused
from resources.ledger.provenance import PartitionRecord
from services.carbon.service import FEED_RECORD, CarbonService, freshness_of
from services.carbon.store import YearLocked
from services.carbon.upload import upload, upload_nothing
from services.carbon.uploaded_file import File

if TYPE_CHECKING:
    from resources.ledger.lease import Lease
    from services.carbon.upload_store import Upload

log = logging.getLogger("perennial.carbon")


@dataclass(frozen=True)
class PollOutcome:
    """What one application answered to a poll."""

    origin: str
    changes: int
    error: PerennialError | None = None
    outside: int = 0
    """Scopes that are not read: their years have no partitions."""

    @property
    def summary(self) -> str:
        if self.error:
            return f"{self.origin}: {self.error.message}"
        others = f", {self.outside:,} more outside PERENNIAL_CARBON_YEARS" if self.outside else ""
        return f"{self.origin}: {self.changes:,} scopes{others}"


@dataclass(frozen=True)
class ReadScope:
    """What one scope came to."""

    scope: str
    version: str
    entries: int
    refused: int
    upload: int


NotifyRead = Callable[[str, ReadScope], None]
"""Called with a partition and what was read of one of its scopes."""


def poll_feeds(carbon: CarbonService) -> list[PollOutcome]:
    """Note the versions of all that each application holds."""
    found = []
    for origin, feed in carbon.feeds.items():
        source, asked_at = freshness_of(origin), carbon.ledger.machine_clock()
        try:
            held = feed.changes()
        except PerennialError as error:
            log.warning("%s entries: %s", origin, error.message)
            carbon.ledger.freshness.failed(source, error)
            found.append(PollOutcome(origin, 0, error))
            continue
        changes = [one for one in held if one.year in carbon.years]
        # Noted with a moment before the call: what changed during it is newer.
        carbon.store.feed_contents.report([FeedChange(*astuple(one)) for one in changes], asked_at)
        carbon.ledger.freshness.succeeded(source, rows_latest=len(changes), rows_today=None)
        found.append(PollOutcome(origin, len(changes), outside=len(held) - len(changes)))
    return found


def read_feed_entries(
    carbon: CarbonService, partitions: Sequence[str], run_id: str, report: NotifyRead
) -> None:
    """Read every changed scope of these partitions. A scope that fails stops no other."""
    failures: list[PerennialError] = []
    with carbon.ledger.lease(API_INGEST, [f"{FEED_ENTRIES}:{p}" for p in partitions], run_id) as lease:
        failures += lease.refused.values()
        for key in lease.keys:
            failed = _read_partition(carbon, lease, key, run_id, report)
            _settle(lease, key, failed)
            failures += failed
    if failures:
        raise failures[0]


def _settle(lease: Lease, key: str, failed: Sequence[PerennialError]) -> None:
    """A failure that a person must correct counts more than one that time heals."""
    if not failed:
        lease.complete(key)
        return
    worst = min(failed, key=lambda e: (isinstance(e, TransientResourceError), isinstance(e, YearLocked)))
    if isinstance(worst, YearLocked):
        lease.skip(key, worst.reason_code)
    elif isinstance(worst, TransientResourceError):
        lease.defer(key, worst)
    else:
        lease.fail(key, worst)


def _read_partition(
    carbon: CarbonService, lease: Lease, key: str, run_id: str, report: NotifyRead
) -> list[PerennialError]:
    partition = key.split(":", 1)[1]
    seen = carbon.observe()
    units = str(seen.state(UNITS.table, str(year_of(partition))).last_known)
    known = seen.feed_read_of(partition)
    changes = [change for change in seen.feed_changes if change.partition == partition]
    failed: list[PerennialError] = []
    for change in changes_to_read(changes, known, units):
        lease.check()
        try:
            carbon.refuse_locked([change.year])
            read, refused = _read_scope(carbon, change, lease.work[key].id)
        except PerennialError as error:
            failed.append(error)
            continue
        others = {scope: refused for scope, refused in known.refused.items() if scope != change.scope}
        mine = {change.scope: {**refused, "units": units}} if refused else {}
        known = FeedRead({**known.versions, change.scope: read.version}, others | mine)
        report(partition, read)
        carbon.provenance.record([_record(partition, known, read, run_id)])
    return failed


def _read_scope(carbon: CarbonService, change: FeedChange, work_id: int) -> tuple[ReadScope, dict[str, Any]]:
    """Upload a scope as it is now; return what was read and what was refused."""
    feed = carbon.feeds[change.source]
    found = feed.entries(change.data_entry_type, change.year, change.institution)
    content = io.BytesIO()
    pq.write_table(found.rows, content, compression="zstd")
    file = File(
        kind="data",
        name=f"{change.source} entries of {change.data_entry_type} {change.year}",
        content=content.getvalue(),
        by=feed.shown_url[:LONGEST],
        institution=change.institution,
        source=change.source,
        year=change.year,
        data_entry_type=change.data_entry_type,
        mark="point",
    )
    kept = _upload_valid(carbon, file) if found.rows.num_rows else upload_nothing(carbon, file).upload
    carbon.ledger.pipelines.add(work_id, [kept.pipeline_id])
    # Entries may be newer than the version that the poll noted; then they need not be read again.
    carbon.store.feed_contents.mark_read(change, found.version)
    left_out = kept.rows - kept.taken
    refused = {"entries": left_out, "of": kept.rows, "first": list(kept.problems[:3])} if left_out else {}
    return ReadScope(change.scope, found.version, kept.taken, left_out, kept.id), refused


def _upload_valid(carbon: CarbonService, file: File) -> Upload:
    try:
        return upload(carbon, file, accept_valid=True, may_shrink=True).upload
    except FileRefused as error:
        raise InvalidInput(
            f"{file.name} from {file.by}: {error.problems[0]}",
            reason_code="entries_refused",
            remedy="correct them in the application; they are read again once it reports a change",
        ) from error


def _record(partition: str, known: FeedRead, read: ReadScope, run_id: str) -> PartitionRecord:
    return PartitionRecord(
        table_name=FEED_RECORD,
        partition=partition,
        rows=read.entries,
        digest=digest(dict(known.versions)),
        inputs=dict(known.versions),
        detail={"refused": {scope: dict(refused) for scope, refused in known.refused.items()}},
        run_id=run_id,
    )


def delete_superseded_readings(carbon: CarbonService, before: datetime) -> int:
    """Delete superseded readings from before a moment, with their files; return how many.

    What a table was made from stays.
    """
    used = {
        int(number)
        for state in carbon.observe().states.values()
        for number in state.inputs.get("uploads", "").split(",")
        if number
    }
    gone = [one for one in carbon.store.uploads.superseded_before(ORIGINS, before) if one.id not in used]
    for one in gone:
        # The note first: without its note, an upload is not missed if the rest fails.
        carbon.staging.remove_note(one.pipeline_id)
        carbon.staging.remove(one.pipeline_id)
    carbon.store.uploads.delete([one.id for one in gone])
    return len(gone)
