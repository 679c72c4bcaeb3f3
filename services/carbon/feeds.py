"""Feeds: polling applications for changes, and reading changed units, factors and entries.

A poll notes which scopes changed (`poll_feeds`); the plan decides which of them to read, and a run reads
each scope whole (`read_feeds`). `feed_uploads.py` makes an upload of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from domain.carbon.feeds import ORIGINS, FeedChange, FeedRead, changes_to_read
from domain.carbon.jobs import KIND_OF
from domain.carbon.observed import Observed
from domain.carbon.plan import units_of_feed
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.hashing import digest
from resources.ledger.provenance import PartitionRecord
from services.carbon.feed_uploads import ReadScope, import_scope
from services.carbon.service import FEED_RECORDS, CarbonService, freshness_of
from services.carbon.store import YearLocked

if TYPE_CHECKING:
    from resources.ledger.lease import Lease

log = logging.getLogger("perennial.carbon")

NOT_IN_FEED = "not_in_feed"
"""The reason code of requested work of which no application has anything."""


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
            log.warning("%s: %s", origin, error.message)
            carbon.ledger.freshness.failed(source, error)
            found.append(PollOutcome(origin, 0, error))
            continue
        changes = [one for one in held if one.year in carbon.years]
        # Noted with a moment before the call: what changed during it is newer.
        carbon.store.feed_contents.report([FeedChange(*astuple(one)) for one in changes], asked_at)
        carbon.store.feed_contents.delete_gone(origin, asked_at)
        carbon.ledger.freshness.succeeded(source, rows_latest=len(changes), rows_today=None)
        found.append(PollOutcome(origin, len(changes), outside=len(held) - len(changes)))
    return found


def read_feeds(
    carbon: CarbonService, table: str, partitions: Sequence[str], run_id: str, report: NotifyRead
) -> None:
    """Read every changed scope of these partitions; what a person requested is polled again, and read whether
    it changed or not. A scope that fails stops no other."""
    failures: list[PerennialError] = []
    with carbon.ledger.lease(KIND_OF[table], [f"{table}:{p}" for p in partitions], run_id) as lease:
        failures += lease.refused.values()
        requested = carbon.ledger.requested_by_person([work.id for work in lease.work.values()])
        polls = poll_feeds(carbon) if requested else []
        for key in lease.keys:
            reading = _Reading(carbon, lease, key, run_id, report, lease.work[key].id in requested)
            failures += reading.settled([poll.error for poll in polls if poll.error])
    if failures:
        raise failures[0]


@dataclass(frozen=True)
class _Reading:
    """The reading of one leased partition."""

    carbon: CarbonService
    lease: Lease
    key: str
    run_id: str
    report: NotifyRead
    requested: bool

    def settled(self, unanswered: Sequence[PerennialError]) -> list[PerennialError]:
        """Read the partition and answer for its work; return what failed."""
        seen = self.carbon.observe()
        changes = [change for change in seen.feed_changes if change.key == self.key]
        if not changes and not unanswered:
            self.lease.skip(self.key, NOT_IN_FEED)
            return []
        failed = self._read(seen, changes) if changes else [*unanswered]
        _settle(self.lease, self.key, failed)
        return failed

    def _read(self, seen: Observed, changes: Sequence[FeedChange]) -> list[PerennialError]:
        known, units = seen.feed_read_of(self.key), units_of_feed(seen, changes[0])
        failed: list[PerennialError] = []
        for change in sorted(changes) if self.requested else changes_to_read(changes, known, units):
            self.lease.check()
            try:
                self.carbon.refuse_locked([change.year])
                read = import_scope(self.carbon, change, self.lease.work[self.key])
            except PerennialError as error:
                failed.append(error)
                continue
            others = {scope: refused for scope, refused in known.refused.items() if scope != change.scope}
            mine = {change.scope: {**read.left_out, "units": units}} if read.left_out else {}
            known = FeedRead({**known.versions, change.scope: read.version}, others | mine)
            self.report(change.partition, read)
            self.carbon.provenance.record([_record(change, known, read, self.run_id)])
        return failed


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


def _record(change: FeedChange, known: FeedRead, read: ReadScope, run_id: str) -> PartitionRecord:
    return PartitionRecord(
        table_name=FEED_RECORDS[change.table],
        partition=change.partition,
        rows=read.rows,
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
