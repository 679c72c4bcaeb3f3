"""Whether what a dropped file says was said anew before its turn came. No Dagster here.

A file that has to be tried again comes in late. What was written after it, and what people uploaded since it
lay there, must not give way to it: it is as if it had come in its turn, and they after it.
"""

from __future__ import annotations

import pyarrow as pa

from domain.carbon.dropped import place_of, turn
from domain.shared.error import InvalidInput
from services.carbon.dropped_files import DroppedFile
from services.carbon.service import CarbonService
from services.carbon.upload_store import Upload


class Overtaken(Exception):
    """All of what the file speaks of was said anew."""


def refuse_overtaken(carbon: CarbonService, wanted: Upload, rows: pa.Table, note: DroppedFile) -> None:
    """Raise if this upload, with these rows, would take the place of a newer one."""
    mine = _spoken_of(wanted, rows)
    newer: dict[tuple[int, str], Upload] = {}
    for one in sorted(_newer(carbon, wanted, note), key=lambda one: one.id):
        theirs = carbon.staging.rows(one.pipeline_id) if one.kind == "factors" else rows
        newer |= dict.fromkeys(mine & _spoken_of(one, theirs), one)
    if not newer:
        return
    names = " and ".join(sorted({f"{one.name}, upload {one.id}," for one in newer.values()}))
    if mine <= newer.keys():
        raise Overtaken(f"{names} came after this file, which takes nobody's place: nothing of it was taken")
    said = ", ".join(f"{topic} {year}".strip() for year, topic in sorted(newer))
    raise InvalidInput(
        f"{names} came after this file and speaks of some of the same: {said}",
        reason_code="partly_older",
        remedy="leave that out, and put the rest into the drop folder again",
    )


def _newer(carbon: CarbonService, wanted: Upload, note: DroppedFile) -> list[Upload]:
    """What came since the file was noted, but for dropped files that were written before it. A dropped file
    that said what was in already made no upload, and has said it anew all the same."""
    since = carbon.store.uploads.since(wanted, note.uploads_before)
    newest = carbon.store.uploads.newest_of(wanted)
    known = [newest] if newest is not None and newest.id <= note.uploads_before else []
    notes = carbon.store.dropped_files.of_uploads([one.id for one in (*since, *known)])
    dropped = {one.upload_id for one in notes}
    written_later = [one for one in notes if _turn(one) > _turn(note)]
    later = {one.upload_id for one in written_later}
    again = {n.upload_id for n in written_later if n.finished_at is None or n.finished_at >= note.noted_at}
    found = [one for one in since if one.id in later or one.id not in dropped]
    return found + [one for one in known if one.id in again]


def _turn(note: DroppedFile) -> tuple[int, int, str]:
    return turn(place_of(note.key), note.stamp)


def _spoken_of(one: Upload, rows: pa.Table) -> frozenset[tuple[int, str]]:
    """Years, and of factors the types in each: a file of them speaks for no other."""
    if one.kind != "factors":
        return frozenset((year, one.topic) for year in one.years)
    found = rows.select(["year", "data_entry_type"]).group_by(["year", "data_entry_type"]).aggregate([])
    return frozenset((row["year"], row["data_entry_type"]) for row in found.to_pylist())
