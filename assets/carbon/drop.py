"""Files of the drop folder are taken in as if they had been uploaded. No Dagster here.

    drop/factors/…   drop/units/…   drop/data/…

Folders between may name the year, the type and the institution (`folder_words.py`):
`drop/data/plane/2025/flights.csv`. Each file is a piece of work of its own, with its attempts. A file that
was read is moved to `taken` or `refused`, a refused one with its problems beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Literal, cast

from assets.carbon.carbon import Carbon
from assets.carbon.drop_folder import Changed, Content, DropFolder, Gone, turn
from assets.carbon.upload import File, FileKind, upload
from assets.carbon.upload import place_of as replaced_by
from domain.carbon.dropped import place_of, shown
from domain.carbon.folder_words import told_by
from domain.carbon.jobs import FILE_INGEST
from domain.carbon.reading.problems import FileRefused
from domain.shared.error import InvalidInput, TransientResourceError
from resources.ledger.model import Work
from resources.ledger.schema import CANCELLED, FAILED

log = logging.getLogger("perennial.carbon")

Outcome = Literal["taken", "refused", "changed", "gone"]

_NOT_TAKEN = {"refused": "file_refused", "changed": "file_changed", "gone": "file_gone"}
"""The reason codes of files that were not taken."""


@dataclass(frozen=True)
class Dropped:
    place: str
    outcome: Outcome
    why: str = ""


def take_dropped(
    carbon: Carbon, path: Path, rows: Sequence[Work], run_id: str, tell: Callable[[Dropped], None]
) -> None:
    """Take in the files that these rows are about. One that fails holds no other back: its row says why."""
    folder = DropFolder(path)
    failures: list[Exception] = []
    for row in sorted(rows, key=lambda row: turn(place_of(row.key), row.fingerprint)):
        try:
            with carbon.ledger.hold(
                FILE_INGEST, [row.key], run_id, fingerprints={row.key: row.fingerprint}
            ) as hold:
                for key in hold.keys:
                    done = _take(carbon, folder, hold.work[key])
                    if done.outcome == "taken":
                        hold.complete(key)
                    else:
                        hold.skip(key, _NOT_TAKEN[done.outcome])
                    tell(done)
        except Exception as error:
            log.exception("%s could not be taken in", row.key)
            failures.append(error)
    if failures:
        raise failures[0]


def _kind(place: str) -> FileKind:
    return cast("FileKind", PurePosixPath(place).parts[0])


def _take(carbon: Carbon, folder: DropFolder, row: Work) -> Dropped:
    place, stamp = place_of(row.key), row.fingerprint
    try:
        with _on_disk(place):
            content = folder.read(place, stamp)
        file = _file(carbon, place, content)
        # An attempt that got no further than this is not repeated: newer uploads may have come since.
        if not carbon.ledger.uploads.came(replaced_by(file), _tried_since(carbon, row)):
            upload(carbon, file)
        with _on_disk(place):
            folder.take_away(place, stamp)
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
    return Dropped(place, "taken")


def _tried_since(carbon: Carbon, row: Work) -> datetime:
    """Since when this very file is being taken in. Work that was given up and retried began with the first; a
    file that was written to meanwhile is another."""
    since = row.started_at or carbon.clock()
    while (before := _given_up(carbon, row)) is not None:
        row, since = before, before.started_at or since
    return max([since, *(event.at for event in carbon.ledger.events(row.id) if event.event == "updated")])


def _given_up(carbon: Carbon, row: Work) -> Work | None:
    """What this work is another try of."""
    last = carbon.ledger.get(row.parent_id) if row.parent_id is not None else None
    return (
        last if last and last.status in (FAILED, CANCELLED) and last.fingerprint == row.fingerprint else None
    )


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


def _file(carbon: Carbon, place: str, content: Content) -> File:
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
