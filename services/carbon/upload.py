"""Uploads: a file is checked whole, staged as it came and as rows, indexed, and its work is enqueued.

The command, the inbox, feeds and the API all call `upload`.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import pyarrow as pa

from domain.carbon.intake.entries_file import Scope, no_entries, read_entries
from domain.carbon.intake.factors_file import read_factors
from domain.carbon.intake.units_file import no_units, read_units
from domain.shared.error import InvalidInput
from domain.shared.names import LONGEST, fault_of_name, fault_of_text
from domain.shared.tabular.numbers import Mark
from domain.shared.tabular.problems import FileRefused
from domain.shared.tabular.sheet import Parsed
from domain.shared.years import YEARS
from resources.ledger.pipelines import new_pipeline_id
from services.carbon.receipt import Receipt
from services.carbon.reindex import restore_rows, write_note
from services.carbon.service import CarbonService
from services.carbon.unit_checks import UnitsOfYears, omitted_units, refuse_taken_units, units_of_others
from services.carbon.upload_store import Upload

FileKind = Literal["units", "factors", "data"]
LARGEST = 1 << 30
"""Bytes one file may have."""


@dataclass(frozen=True)
class File:
    """A file and what is said beside it."""

    kind: FileKind
    name: str
    content: bytes
    by: str
    institution: str = "main"
    source: str = "csv"
    year: int | None = None
    data_entry_type: str | None = None
    mark: Mark | None = None
    modified_at: datetime | None = None
    """When it was last written, of an inbox file: it supersedes no upload that is newer."""

    def __post_init__(self) -> None:
        """What is said beside a file is noted for good, whatever becomes of the file."""
        names = {"file name": self.name, "institution": self.institution, "type": self.data_entry_type}
        faults = {what: fault_of_name(name) for what, name in names.items() if name is not None}
        faults["uploader"] = fault_of_text(self.by, 2 * LONGEST)
        for what, fault in faults.items():
            if fault:
                raise InvalidInput(f"the {what} is {fault}", reason_code="bad_name", remedy="give it another")


def upload(
    carbon: CarbonService,
    file: File,
    *,
    accept_valid: bool = False,
    beside: Collection[int] = (),
) -> Receipt:
    """Accept a file, or raise FileRefused, having recorded it. What follows is the plan's.

    `beside`: the uploads it comes together with, none of which it may supersede.
    """
    pipeline = new_pipeline_id()
    try:
        parsed = checked(carbon, file, accept_valid=accept_valid)
    except FileRefused as error:
        carbon.store.uploads.record(_refused(file, pipeline, error))
        raise
    return _take(carbon, file, pipeline, parsed, beside)


def scope_of(file: File) -> Upload:
    """Return an upload of the file's scope: what it would supersede has the same."""
    years = (file.year,) if file.year else ()
    return replace(_noted(file, ""), topic=file.data_entry_type or "", years=years)


def upload_nothing(carbon: CarbonService, file: File) -> Receipt:
    """All entries of a place are gone: an application says so, or a person. In a file it is a mistake."""
    if file.kind == "units":
        frame = no_units()
    else:
        frame = no_entries(carbon.catalogue.type(file.data_entry_type or ""))
    return _take(carbon, file, new_pipeline_id(), Parsed(frame, rows=0, bad_rows=0))


def _take(
    carbon: CarbonService,
    file: File,
    pipeline: str,
    parsed: Parsed,
    beside: Collection[int] = (),
) -> Receipt:
    wanted = _accepted(file, pipeline, parsed)
    carbon.refuse_not_indexed()
    if file.kind == "units":
        refuse_taken_units(carbon, file.name, file.institution, parsed.frame)
    # First of all: rows that are restored change nothing, even in a locked year.
    restored = restore_rows(carbon.staging, carbon.store, carbon.ledger, wanted, file.content, parsed.frame)
    if restored:
        newest = carbon.store.uploads.newest_of(wanted)
        superseded = newest is not None and newest.id > restored[-1].id
        return Receipt(restored[-1], known=False, restored=True, superseded=superseded)
    if (same := _imported_before(carbon, wanted)) is not None:
        return Receipt(same, known=True, superseded=True)
    carbon.refuse_locked(wanted.years)
    if (same := _newest_is_the_same(carbon, wanted, parsed)) is not None:
        return Receipt(same, known=True)
    _refuse_older(carbon, wanted, parsed.frame)
    replaced = tuple(carbon.store.uploads.superseded_by(wanted))
    if (other := next((old for old in replaced if old.id in beside), None)) is not None:
        raise InvalidInput(
            f"{file.name}: it is of the same type, year and institution as {other.name}, which came with "
            "it, and would take its place",
            reason_code="same_place",
            remedy="put all rows of them into one file",
        )
    carbon.staging.keep(pipeline, file.content, parsed.frame)
    kept = carbon.store.uploads.record(wanted)
    if file.kind == "units":
        _refuse_if_taken_meanwhile(carbon, file, parsed, kept)
    write_note(carbon.staging, kept)
    return Receipt(kept, known=False, jobs=_request(carbon, kept), replaced=replaced)


def _refuse_if_taken_meanwhile(carbon: CarbonService, file: File, parsed: Parsed, kept: Upload) -> None:
    """Of two who bring the same unit at once both may have found it free. Now each sees the other."""
    try:
        refuse_taken_units(carbon, file.name, file.institution, parsed.frame)
    except InvalidInput:
        carbon.store.uploads.refuse(kept.id)
        raise


def checked(carbon: CarbonService, file: File, *, accept_valid: bool = False) -> Parsed:
    """The file's rows, all of them good or, with `accept_valid`, those that are."""
    try:
        parsed = _read(carbon, file).or_refused(file.name, accept_valid=accept_valid)
        if (check := {"units": omitted_units, "data": units_of_others}.get(file.kind)) is None:
            return parsed
        return replace(parsed, warnings=(*check(carbon, file.institution, parsed.frame), *parsed.warnings))
    except FileRefused as error:
        raise FileRefused(file.name, error.problems, error.total) from None


def _read(carbon: CarbonService, file: File) -> Parsed:
    source = io.BytesIO(file.content)
    if file.kind == "units":
        return read_units(source, year=file.year)
    if file.kind == "factors":
        return read_factors(source, carbon.catalogue, year=file.year, mark=file.mark)
    scope = Scope(file.institution, file.source, file.year, file.data_entry_type, file.mark)
    return read_entries(source, carbon.catalogue, UnitsOfYears(carbon), scope)


def _newest_is_the_same(carbon: CarbonService, wanted: Upload, parsed: Parsed) -> Upload | None:
    """The upload that this one would repeat: nothing of its place and years came after it. The same bytes are
    another file where they are read otherwise, say with another decimal mark."""
    one = carbon.store.uploads.newest_of(wanted)
    if one is None:
        return None
    same = (one.sha256, one.years, one.taken) == (wanted.sha256, wanted.years, wanted.taken)
    # Rows that are there may still be others: those of another decimal mark.
    return one if same and carbon.staging.holds(one.pipeline_id, parsed.frame) else None


def _imported_before(carbon: CarbonService, wanted: Upload) -> Upload | None:
    """Return the superseded upload that an inbox file, not written to since, has become."""
    if wanted.modified_at is None:
        return None
    known = (wanted.scope, wanted.modified_at)
    same = carbon.store.uploads.find(accepted=True, sha256=wanted.sha256)
    found = next((one for one in same if (one.scope, one.modified_at) == known), None)
    newest = carbon.store.uploads.newest_of(wanted)
    return None if found is None or newest is None or newest.id == found.id else found


def _refuse_older(carbon: CarbonService, wanted: Upload, rows: pa.Table) -> None:
    """Raise if an inbox file was written before an upload of its scope; of factors, of any of its types."""
    if (mine := wanted.modified_at) is None:
        return
    for one in carbon.store.uploads.of_scope(wanted):
        if one.written_at > mine and _has_same_types(carbon, one, rows):
            raise InvalidInput(
                f"{wanted.name} was written at {mine:%Y-%m-%d %H:%M} UTC, before upload {one.id} "
                f"of its scope ({one.name}, {one.written_at:%Y-%m-%d %H:%M} UTC)",
                reason_code="older_than_newest",
                remedy="to import it after all, upload it by command, or touch it and put it back",
            )


def _has_same_types(carbon: CarbonService, one: Upload, rows: pa.Table) -> bool:
    if one.kind != "factors":
        return True
    others = carbon.staging.rows(one.pipeline_id).column("data_entry_type").to_pylist()
    return not set(rows.column("data_entry_type").to_pylist()).isdisjoint(others)


def _request(carbon: CarbonService, kept: Upload) -> tuple[int, ...]:
    """Its work, at once and not at the next look, so that whoever uploaded it gets its numbers."""
    verdicts = [v for v in carbon.plan().due if kept.pipeline_id in v.pipelines]
    report = carbon.ledger.enqueue([v.item() for v in verdicts])
    return tuple(sorted(row.id for row in (*report.created, *report.updated, *report.absorbed)))


def _accepted(file: File, pipeline: str, parsed: Parsed) -> Upload:
    if parsed.frame.num_rows:
        topic = parsed.frame.column("data_entry_type")[0].as_py() if file.kind == "data" else ""
        years = tuple(parsed.years)
    else:
        topic, years = file.data_entry_type or "", (file.year,) if file.year else ()
    return replace(
        _noted(file, pipeline),
        topic=topic,
        years=years,
        rows=parsed.rows,
        taken=parsed.frame.num_rows,
        problem_count=parsed.problem_count,
        problems=[p.as_json() for p in parsed.problems],
        warnings=list(parsed.warnings[:100]),
    )


def _refused(file: File, pipeline: str, error: FileRefused) -> Upload:
    return replace(
        _noted(file, pipeline),
        topic=file.data_entry_type or "",
        # A year that there is none of is a problem of the file, and may be larger than a column holds.
        years=(file.year,) if file.year is not None and file.year in YEARS else (),
        accepted=False,
        problem_count=error.total,
        problems=[p.as_json() for p in error.problems],
    )


def _noted(file: File, pipeline: str) -> Upload:
    return Upload(
        kind=file.kind,
        topic="",
        institution=file.institution,
        source=file.source,
        name=file.name,
        sha256=hashlib.sha256(file.content).hexdigest(),
        bytes=len(file.content),
        rows=0,
        taken=0,
        years=(),
        uploaded_by=file.by,
        modified_at=file.modified_at,
        pipeline_id=pipeline,
    )
