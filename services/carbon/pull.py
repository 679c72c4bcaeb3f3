"""Reading the entries of applications beside us. What is read comes in as a file does. No Dagster here.

Of an application we hear which places changed (`listen`); the plan says which of them to read, and a run
reads each whole (`pull_entries`). Good entries are taken, wrong ones are told, and none stops the others.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from domain.carbon.feeds import Heard, Pulled, unpulled
from domain.carbon.jobs import API_INGEST, PULLED
from domain.carbon.plan import year_of
from domain.carbon.reading.problems import FileRefused
from domain.carbon.tables import UNITS
from domain.shared.error import InvalidInput, PerennialError, TransientResourceError
from domain.shared.hashing import digest
from domain.shared.names import LONGEST
from resources.feeds.errors import ChangedMeanwhile
from resources.ledger.feed_places import FeedPlace
from resources.ledger.provenance import PartitionRecord
from services.carbon.service import PULLED_RECORD, CarbonService, YearLocked, freshness_of
from services.carbon.upload import File, upload, upload_nothing

if TYPE_CHECKING:
    from resources.feeds.client import Entries, FeedClient
    from resources.ledger.lease import Lease
    from resources.ledger.uploads import Upload

log = logging.getLogger("perennial.carbon")

PATIENCE = 10.0
"""Seconds after which listening to an application stops for now: a sensor's tick has a minute."""


READ_AGAIN = 3
"""Times a place is read again in a run. After that its work is put off."""


@dataclass(frozen=True)
class Read:
    """What became of one place."""

    place: str
    version: str
    entries: int
    refused: int
    upload: int


Tell = Callable[[str, Read], None]
"""Given a partition and what was read of one of its places."""


@dataclass(frozen=True)
class Listened:
    """What one application said."""

    origin: str
    places: int
    cursor: str
    error: PerennialError | None = None


def listen(carbon: CarbonService, cursors: Mapping[str, str]) -> list[Listened]:
    """Hear of each application what changed there since its cursor; without one, all it has."""
    found = []
    for origin, feed in carbon.feeds.items():
        source, cursor = freshness_of(origin), cursors.get(origin, "")
        try:
            # Noted before it is asked: what changes meanwhile is newer than the answer.
            asked_at = carbon.ledger.machine_clock()
            changes = feed.changes(cursor, PATIENCE)
        except PerennialError as error:
            log.warning("%s entries: %s", origin, error.message)
            carbon.ledger.freshness.failed(source, error)
            found.append(Listened(origin, 0, cursor, error))
            continue
        carbon.ledger.feed_places.hear([_place(one) for one in changes.places], asked_at)
        carbon.ledger.freshness.succeeded(source, rows_latest=len(changes.places), rows_today=None)
        found.append(Listened(origin, len(changes.places), changes.cursor or cursor))
    return found


def pull_entries(carbon: CarbonService, partitions: Sequence[str], run_id: str, tell: Tell) -> None:
    """Read what is unread of these partitions. A place that fails holds no other back."""
    failures: list[PerennialError] = []
    with carbon.ledger.lease(API_INGEST, [f"{PULLED}:{p}" for p in partitions], run_id) as lease:
        failures += [YearLocked(lock) for lock in lease.locked.values()]
        for key in lease.keys:
            before = len(failures)
            _pull(carbon, lease, key, run_id, tell, failures)
            _answer(lease, key, failures[before:])
    if failures:
        raise failures[0]


def _answer(lease: Lease, key: str, failed: Sequence[PerennialError]) -> None:
    """What a person must mend counts more than what waiting mends."""
    if not failed:
        lease.complete(key)
        return
    worst = next((e for e in failed if not isinstance(e, TransientResourceError)), failed[0])
    if isinstance(worst, YearLocked):
        lease.skip(key, worst.reason_code)
    elif isinstance(worst, TransientResourceError):
        lease.defer(key, worst)
    else:
        lease.fail(key, worst)


def _pull(
    carbon: CarbonService, lease: Lease, key: str, run_id: str, tell: Tell, failures: list[PerennialError]
) -> None:
    partition = key.split(":", 1)[1]
    seen = carbon.observe()
    units = str(seen.state(UNITS.table, str(year_of(partition))).last_known)
    known = seen.pulled_of(partition)
    for place in unpulled((h for h in seen.heard if h.partition == partition), known, units):
        lease.check()
        try:
            carbon.refuse_locked([place.year])
            read, refused = _read(carbon, place, lease.work[key].id)
        except PerennialError as error:
            failures.append(error)
            continue
        known = Pulled(
            {**known.versions, place.place: read.version},
            {p: r for p, r in known.refused.items() if p != place.place}
            | ({place.place: {**refused, "units": units}} if refused else {}),
        )
        tell(partition, read)
        carbon.provenance.record([_record(partition, known, read, run_id)])


def _read(carbon: CarbonService, place: Heard, work_id: int) -> tuple[Read, dict[str, Any]]:
    """A place as it is now, taken in; and what of it was refused."""
    feed = carbon.feeds[place.source]
    found = _entries(feed, place)
    content = io.BytesIO()
    pq.write_table(found.rows, content, compression="zstd")
    file = File(
        kind="data",
        name=f"{place.source} entries of {place.data_entry_type} {place.year}",
        content=content.getvalue(),
        by=feed.shown_url[:LONGEST],
        institution=place.institution,
        source=place.source,
        year=place.year,
        data_entry_type=place.data_entry_type,
        mark="point",
    )
    kept = _taken(carbon, file) if found.rows.num_rows else upload_nothing(carbon, file).upload
    carbon.ledger.pipelines.add(work_id, [kept.pipeline_id])
    # Entries may be newer than what was heard of them; then nobody need read them again.
    carbon.ledger.feed_places.read(_place(place), found.version)
    left_out = kept.rows - kept.taken
    refused = {"entries": left_out, "of": kept.rows, "first": list(kept.problems[:3])} if left_out else {}
    return Read(place.place, found.version, kept.taken, left_out, kept.id), refused


def _entries(feed: FeedClient, place: Heard) -> Entries:
    """Edited while it is read, a place is read again at once, a few times: people who edit all day must not
    keep it from being read, each time for longer."""
    for _ in range(READ_AGAIN):
        try:
            return feed.entries(place)
        except ChangedMeanwhile as error:
            log.info("%s; it is read again", error.message)
    return feed.entries(place)


def _taken(carbon: CarbonService, file: File) -> Upload:
    try:
        return upload(carbon, file, accept_valid=True).upload
    except FileRefused as error:
        raise InvalidInput(
            f"{file.name} from {file.by}: {error.problems[0]}",
            reason_code="entries_refused",
            remedy="mend them in the application; they are read again once it says they changed",
        ) from error


def _place(one: Heard) -> FeedPlace:
    return FeedPlace(one.source, one.institution, one.data_entry_type, one.year, one.version)


def _record(partition: str, known: Pulled, read: Read, run_id: str) -> PartitionRecord:
    return PartitionRecord(
        table_name=PULLED_RECORD,
        partition=partition,
        rows=read.entries,
        digest=digest(dict(known.versions)),
        inputs=dict(known.versions),
        detail={"refused": {place: dict(told) for place, told in known.refused.items()}},
        run_id=run_id,
    )
