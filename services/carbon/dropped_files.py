"""What became of each file that was dropped: the upload it is, and where it was moved to. Facts only.

A note is of one file as it lay in one place, from when it was seen at rest until it is done with. Whatever
is tried again finds it: it says what came since, and what has been done already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, and_, delete, exists, func, insert, select, update

from domain.shared.clock import Clock
from resources.database.engine import reading, writing
from resources.database.statements import chunks, lock_name
from services.carbon.upload_store import dropped_file, upload


@dataclass(frozen=True, slots=True)
class DroppedFile:
    """`key` names its place, as that of its work does. `uploads_before` is the newest upload of that moment:
    those with greater numbers came since. Not `finished_at`: it still lies there, as far as is known."""

    id: int
    key: str
    stamp: str
    noted_at: datetime
    uploads_before: int
    upload_id: int | None
    moved_to: str | None
    finished_at: datetime | None


_COLUMNS = [dropped_file.c[field.name] for field in fields(DroppedFile)]
_OPEN = dropped_file.c.finished_at.is_(None)


@dataclass(frozen=True, slots=True)
class DroppedFiles:
    """Moments are of the machine's clock: it is files that are watched, not days."""

    engine: Engine
    clock: Clock

    def note(self, lying: Mapping[str, str]) -> dict[str, DroppedFile]:
        """By key, what is known of these files, each as it is. One that is another by now, or that was done
        with and came back, begins anew."""
        with writing(self.engine) as connection:
            lock_name(connection, dropped_file.name)
            known = _open_notes(connection, lying)
            others = [note.id for key, note in known.items() if note.stamp != lying[key]]
            self._finish(connection, others)
            new = [key for key in lying if key not in known or known[key].id in others]
            if new:
                before = connection.execute(select(func.coalesce(func.max(upload.c.id), 0))).scalar_one()
                told = {"noted_at": self.clock(), "uploads_before": before}
                rows = [{"key": key, "stamp": lying[key], **told} for key in new]
                connection.execute(insert(dropped_file), rows)
            return _open_notes(connection, lying)

    def became(self, number: int, upload_id: int) -> None:
        self._write(number, upload_id=upload_id)

    def moves(self, number: int, path: str) -> None:
        """It is about to be moved there: told before, so that nothing is moved that nobody knows of."""
        self._write(number, moved_to=path, moved_at=self.clock())

    def put_back(self, number: int) -> None:
        """It is not where it was moved to any more."""
        self._write(number, moved_to=None, moved_at=None)

    def finish(self, number: int) -> None:
        with writing(self.engine) as connection:
            self._finish(connection, [number])

    def leave(self, keys: Collection[str]) -> None:
        """Nothing lies there any more."""
        with writing(self.engine) as connection:
            self._finish(connection, [note.id for note in _open_notes(connection, keys).values()])

    def moved_since(self, since: datetime) -> list[DroppedFile]:
        """What lies where it was moved to, for all that is known here: no other was noted in its place since,
        and none was moved to where it went."""
        later = dropped_file.alias("later")
        query = (
            select(*_COLUMNS)
            .where(dropped_file.c.moved_at >= since)
            .where(~exists().where(and_(later.c.key == dropped_file.c.key, later.c.id > dropped_file.c.id)))
            .order_by(dropped_file.c.moved_at, dropped_file.c.id)
        )
        with reading(self.engine) as connection:
            notes = [DroppedFile(*row) for row in connection.execute(query)]
        return list({note.moved_to: note for note in notes}.values())

    def of_uploads(self, upload_ids: Collection[int]) -> list[DroppedFile]:
        """The files that became these."""
        query = select(*_COLUMNS).where(dropped_file.c.upload_id.in_(list(upload_ids)))
        with reading(self.engine) as connection:
            return [DroppedFile(*row) for row in connection.execute(query.order_by(dropped_file.c.id))]

    def forget(self, before: datetime) -> None:
        """Those that were done with by then."""
        with writing(self.engine) as connection:
            connection.execute(delete(dropped_file).where(dropped_file.c.finished_at < before))

    def _finish(self, connection: Connection, numbers: Collection[int]) -> None:
        for chunk in chunks(sorted(numbers)):
            done = update(dropped_file).where(dropped_file.c.id.in_(chunk), _OPEN)
            connection.execute(done.values(finished_at=self.clock()))

    def _write(self, number: int, **values: Any) -> None:
        with writing(self.engine) as connection:
            connection.execute(update(dropped_file).where(dropped_file.c.id == number).values(**values))


def _open_notes(connection: Connection, keys: Iterable[str]) -> dict[str, DroppedFile]:
    found = {}
    for chunk in chunks(sorted(keys)):
        for row in connection.execute(select(*_COLUMNS).where(dropped_file.c.key.in_(chunk), _OPEN)):
            found[row.key] = DroppedFile(*row)
    return found
