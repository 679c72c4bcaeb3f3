"""One look at the drop folder: what has come to rest becomes work, and is sent for. No Dagster here.

Who starts no runs only observes: what was sent for and never begun would wait for minutes.

A look reads no file and moves none, so it ends soon, whatever lies there. The one exception are files that
were written to after a run had taken them: they are put back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path

from domain.carbon.dropped import LATE, Seen, at_rest, key_of, looked, path_of, place_of, shown
from domain.carbon.jobs import DROPPED, FILE_INGEST, PRIORITY
from domain.shared.work import WorkRequest
from resources.ledger.attention import attention
from resources.ledger.model import Dispatch, Work
from resources.ledger.schema import FAILED, RUNNING, WAITING
from services.carbon.drop_folder import DropFolder
from services.carbon.service import CarbonService

log = logging.getLogger("perennial.carbon")

AT_ONCE = 2_000
"""Files one look passes on; the others are the next one's. What cannot be taken is in nobody's way."""


@dataclass(frozen=True)
class DropSeen:
    """`cursor` is what the next look has to know; `lying` counts all files, `resting` those to be taken."""

    cursor: str
    lying: int
    resting: int


@dataclass(frozen=True)
class DropLook(DropSeen):
    """The same, and what a run is to be started for now."""

    starts: tuple[Dispatch, ...]


def look_at_drop(
    carbon: CarbonService, path: Path, cursor: str, unfinished: Collection[str] = ()
) -> DropLook:
    """For whoever starts the runs."""
    folder = DropFolder(path)
    seen = _observed(carbon, folder, cursor)
    starts = _sent_for(carbon, unfinished)
    # Last, as a look that is killed here is not to keep anything from being taken.
    _put_back_late(carbon, folder)
    return DropLook(seen.cursor, seen.lying, seen.resting, tuple(starts))


def observe_drop(carbon: CarbonService, path: Path, cursor: str) -> DropSeen:
    """What lies there. What has come to rest is work by then, and is sent for by nobody yet."""
    folder = DropFolder(path)
    _put_back_late(carbon, folder)
    return _observed(carbon, folder, cursor)


def _observed(carbon: CarbonService, folder: DropFolder, cursor: str) -> DropSeen:
    now = carbon.ledger.machine_clock().timestamp()
    lying = folder.lying()
    seen = looked(lying, _read(cursor), now)
    resting = at_rest(seen, now)
    rows = _attention(carbon)
    known = {(row.key, row.fingerprint) for row in rows}
    items = (_item(place, seen[place].stamp) for place in resting)
    new = list(islice((item for item in items if (item.key, item.fingerprint) not in known), AT_ONCE))
    # From now on whatever comes, comes after them.
    carbon.store.dropped_files.note({item.key: item.fingerprint for item in new})
    carbon.ledger.enqueue(new)
    _forget(carbon, rows, lying)
    return DropSeen(_written(seen), len(lying), len(resting))


def _put_back_late(carbon: CarbonService, folder: DropFolder) -> None:
    """What was taken within the last hour and was written to since, by whoever was not done with it. Nobody
    need ever empty `taken`: only what a run moved is looked at, where it was moved to."""
    notes = carbon.store.dropped_files
    for note in notes.moved_since(carbon.ledger.machine_clock() - timedelta(seconds=LATE)):
        place, path = place_of(note.key), path_of(note.moved_to or "")
        if folder.written_late(path, note.stamp) and folder.put_back(path, place):
            notes.put_back(note.id)
            log.warning("%s was written to after it had been taken: it is taken again", shown(place))


def _attention(carbon: CarbonService) -> list[Work]:
    return attention(carbon.ledger.engine, (FILE_INGEST,))


def _is_at_work(rows: Iterable[Work], unfinished: Collection[str]) -> bool:
    """Whether a run is taking files in. One beside it might take a newer file before an older one. What the
    dead had is taken from them by the sweep, which ends their runs."""
    return any(
        row.status == RUNNING or (row.status in WAITING and row.dispatch_id in unfinished) for row in rows
    )


def _sent_for(carbon: CarbonService, unfinished: Collection[str]) -> list[Dispatch]:
    if _is_at_work(_attention(carbon), unfinished):
        return []
    return carbon.ledger.dispatch(FILE_INGEST, limit=1, group=lambda _: DROPPED, busy=unfinished)


def _item(place: str, stamp: str) -> WorkRequest:
    return WorkRequest(
        kind=FILE_INGEST,
        key=key_of(place),
        fingerprint=stamp,
        reason_code="dropped",
        priority=PRIORITY[FILE_INGEST],
    )


def _forget(carbon: CarbonService, rows: Sequence[Work], lying: Mapping[str, str]) -> None:
    """What failed with a file that is not there any more."""
    live = {row.key for row in rows if row.status != FAILED}
    gone = [row.key for row in rows if row.status == FAILED and place_of(row.key) not in lying]
    keys = [key for key in gone if key not in live]
    if not keys:
        return
    with carbon.ledger.lease(FILE_INGEST, keys, "worker:look", heartbeat=False) as lease:
        for key in lease.keys:
            lease.skip(key, "file_gone")
        carbon.store.dropped_files.leave(lease.keys)


def _read(cursor: str) -> dict[str, Seen]:
    return {place: Seen(**one) for place, one in json.loads(cursor or "{}").get("seen", {}).items()}


def _written(seen: Mapping[str, Seen]) -> str:
    return json.dumps({"seen": {place: asdict(one) for place, one in seen.items()}})
