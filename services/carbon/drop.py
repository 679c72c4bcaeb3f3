"""Files of the drop folder are taken in as if they had been uploaded. No Dagster here.

    drop/factors/…   drop/units/…   drop/data/…

Folders between may name the year, the type and the institution (`folder_words.py`):
`drop/data/plane/2025/flights.csv`. Each file is a piece of work of its own, with its attempts. A file that
was read is moved to `taken` or `refused`, a refused one with its problems beside it. What an attempt did is
noted in the ledger as it is done: the next goes on from there, and does nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, cast

from domain.carbon.dropped import place_of, shown, turn
from domain.carbon.folder_words import told_by
from domain.carbon.jobs import FILE_INGEST
from domain.carbon.reading.problems import FileRefused
from domain.shared.error import InvalidInput, TransientResourceError
from resources.ledger.model import Work
from services.carbon.drop_folder import Changed, Content, DropFolder, Gone
from services.carbon.dropped_files import DroppedFile
from services.carbon.overtaken import Overtaken
from services.carbon.service import CarbonService
from services.carbon.upload import File, FileKind, upload

log = logging.getLogger("perennial.carbon")

Outcome = Literal["taken", "older", "refused", "changed", "gone"]

_NOT_TAKEN = {
    "older": "file_older",
    "refused": "file_refused",
    "changed": "file_changed",
    "gone": "file_gone",
}
"""The reason codes of files that were not taken."""


@dataclass(frozen=True)
class Dropped:
    place: str
    outcome: Outcome
    why: str = ""


def take_dropped(
    carbon: CarbonService, path: Path, rows: Sequence[Work], run_id: str, tell: Callable[[Dropped], None]
) -> None:
    """Take in the files that these rows are about. One that fails holds no other back: its row says why."""
    folder = DropFolder(path)
    failures: list[Exception] = []
    for row in sorted(rows, key=lambda row: turn(place_of(row.key), row.fingerprint)):
        try:
            with carbon.ledger.lease(
                FILE_INGEST, [row.key], run_id, fingerprints={row.key: row.fingerprint}
            ) as lease:
                for key in lease.keys:
                    done = _take(carbon, folder, lease.work[key])
                    if done.outcome == "taken":
                        lease.complete(key)
                    else:
                        lease.skip(key, _NOT_TAKEN[done.outcome])
                    tell(done)
        except Exception as error:
            log.exception("%s could not be taken in", row.key)
            failures.append(error)
    if failures:
        raise failures[0]


def _kind(place: str) -> FileKind:
    return cast("FileKind", PurePosixPath(place).parts[0])


def _take(carbon: CarbonService, folder: DropFolder, row: Work) -> Dropped:
    notes = carbon.store.dropped_files
    note = notes.note({row.key: row.fingerprint})[row.key]
    done = _taken(carbon, folder, note)
    if done.outcome == "changed":
        notes.put_back(note.id)  # what was moved was another, and lies there again
    notes.finish(note.id)
    return done


def _taken(carbon: CarbonService, folder: DropFolder, note: DroppedFile) -> Dropped:
    place, stamp = place_of(note.key), note.stamp
    try:
        with _on_disk(place):
            content = folder.read(place, stamp)
        older = _become(carbon, _file(carbon, place, content), note)
        with _on_disk(place):
            folder.take_away(
                place,
                stamp,
                lambda path: carbon.store.dropped_files.moves(note.id, shown(path)),
                note=f"{older}\n" if older else "",
            )
    except Gone:
        return Dropped(place, "gone")
    except Changed:
        return Dropped(place, "changed", "somebody is at it; it is taken once it is at rest")
    except InvalidInput as error:
        told = [str(p) for p in error.problems] if isinstance(error, FileRefused) else [error.message]
        with _on_disk(place):
            folder.refuse(place, "\n".join(told) + "\n")
        log.warning("refused: %s: %s", shown(place), error.message)
        return Dropped(place, "refused", error.message)
    if older:
        log.warning("only moved: %s: %s", shown(place), older)
        return Dropped(place, "older", older)
    return Dropped(place, "taken")


def _become(carbon: CarbonService, file: File, note: DroppedFile) -> str:
    """Why it is not taken, if newer ones came before it. An attempt that got so far is not repeated."""
    if note.upload_id is not None:
        return ""
    try:
        receipt = upload(carbon, file, dropped=note)
    except Overtaken as error:
        return str(error)
    carbon.store.dropped_files.became(note.id, receipt.upload.id)
    return ""


@contextmanager
def _on_disk(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransientResourceError(
            f"{shown(place)} cannot be read or moved: {error.strerror or error}",
            reason_code="drop_folder",
            remedy="see that the drop folder, its `taken` and its `refused` can be read and written",
        ) from error


def _file(carbon: CarbonService, place: str, content: Content) -> File:
    parts = PurePosixPath(place).parts
    told = told_by(parts[1:-1], carbon.catalogue.types)
    return File(
        kind=_kind(place),
        name=parts[-1],
        content=content.data,
        by=f"drop folder, owner {content.owner}",
        institution=told.get("institution", "main"),
        year=int(told["year"]) if "year" in told else None,
        data_entry_type=told.get("type"),
    )
