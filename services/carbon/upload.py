"""Uploads: a file is checked whole, staged as it came and as rows, indexed, and its work is enqueued.

The command, the inbox, feeds and the API all call `upload`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from domain.carbon.fallbacks import FactorGaps
from domain.carbon.intake.entries_file import no_entries
from domain.carbon.intake.units_file import no_units
from domain.carbon.pipelines import PHASES
from domain.shared.error import InvalidInput
from domain.shared.tabular.problems import FileRefused
from domain.shared.tabular.sheet import Parsed
from domain.shared.years import YEARS
from resources.ledger.pipelines import new_pipeline_id
from services.carbon.fallbacks import gaps_of_file
from services.carbon.reindex import write_note
from services.carbon.replacements import Replacement, refuse_shrinking, replacements
from services.carbon.service import CarbonService
from services.carbon.unit_checks import refuse_taken_units
from services.carbon.upload_store import Upload
from services.carbon.uploaded_file import File, check_file


@dataclass(frozen=True)
class Receipt:
    """What became of a file."""

    upload: Upload
    known: bool
    """The same file is in already: nothing was done."""
    superseded: bool = False
    """Newer uploads supersede the upload that is known."""
    jobs: tuple[int, ...] = ()
    replaced: tuple[Replacement, ...] = ()
    gaps: tuple[FactorGaps, ...] = ()
    """Of data, which rows have no factor of their own."""

    @property
    def summary(self) -> str:
        one = self.upload
        if self.known:
            later = "; newer uploads supersede it" if self.superseded else ""
            return f"already in, as upload {one.id}{later}; nothing to do"
        left = f", {one.rows - one.taken:,} left out" if one.rows != one.taken else ""
        years = ", ".join(map(str, one.years))
        return f"{one.taken:,} rows of {years} taken{left}; upload {one.id}, pipeline {one.pipeline_id}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What takes its place, and what is counted with a fallback factor or with none."""
        return (*map(str, self.replaced), *(note for gaps in self.gaps for note in gaps.notes))

    def as_json(self) -> dict[str, Any]:
        one = self.upload
        return {
            "upload": one.id,
            "pipeline": one.pipeline_id,
            "file": one.name,
            "sha256": one.sha256,
            "kind": one.kind,
            "type": one.topic or None,
            "years": list(one.years),
            "rows": one.rows,
            "taken": one.taken,
            "problems": list(one.problems),
            "problem_count": one.problem_count,
            "warnings": list(one.warnings),
            "known_already": self.known,
            "superseded": self.superseded,
            "jobs": list(self.jobs),
            "replaced": [one.as_json() for one in self.replaced],
            "fallbacks": [
                {"year": gaps.year, "rows": one.entries, "wanted": one.wanted, "used": one.used}
                for gaps in self.gaps
                for one in gaps.fallbacks
            ],
            "notes": list(self.notes),
        }


def upload(
    carbon: CarbonService,
    file: File,
    *,
    accept_valid: bool = False,
    may_shrink: bool = False,
    together: Collection[int] = (),
    pipeline: str | None = None,
) -> Receipt:
    """Accept a file, or raise FileRefused, having recorded it. What follows is the plan's.

    `may_shrink`: it may have less than half of the rows that it supersedes. `together`: the uploads of the
    same command, none of which it may supersede. `pipeline`: the one that it begins, if it was named before.
    """
    pipeline = pipeline or new_pipeline_id()
    try:
        parsed = check_file(carbon, file, accept_valid=accept_valid)
    except FileRefused as error:
        carbon.store.uploads.record(_refused(file, pipeline, error))
        raise
    wanted = accepted(file, pipeline, parsed)
    return _store(carbon, file, wanted, parsed.frame, may_shrink=may_shrink, together=together)


def upload_nothing(
    carbon: CarbonService, file: File, *, may_shrink: bool = True, pipeline: str | None = None
) -> Receipt:
    """Accept that a scope has no entries any more. In a file that would be a mistake."""
    if file.kind == "units":
        frame = no_units()
    else:
        frame = no_entries(carbon.catalogue.type(file.data_entry_type or ""))
    wanted = accepted(file, pipeline or new_pipeline_id(), Parsed(frame, rows=0, bad_rows=0))
    return _store(carbon, file, wanted, frame, may_shrink=may_shrink)


def scope_of(file: File) -> Upload:
    """Return an upload of the file's scope: what it would supersede has the same."""
    years = (file.year,) if file.year else ()
    return replace(_described(file, ""), topic=file.data_entry_type or "", years=years)


def _store(
    carbon: CarbonService,
    file: File,
    wanted: Upload,
    rows: pa.Table,
    *,
    may_shrink: bool,
    together: Collection[int] = (),
) -> Receipt:
    carbon.refuse_not_indexed()
    carbon.refuse_outside(wanted.years)
    if file.kind == "units":
        refuse_taken_units(carbon, file.name, file.institution, rows)
    # Before any lock of its years: a file that is known changes nothing.
    newest = carbon.store.uploads.newest_of(wanted)
    if newest and (receipt := _known(carbon, wanted, rows, newest)):
        # Of two that upload it at once, the second may come before its work is enqueued.
        jobs = _jobs_of(carbon, receipt.upload) or _enqueue(carbon, receipt.upload)
        return replace(receipt, jobs=jobs)
    carbon.refuse_locked(wanted.years)
    _refuse_older(carbon, wanted, rows)
    replaced = tuple(replacements(carbon, wanted, rows))
    if (other := next((one.old for one in replaced if one.old.id in together), None)) is not None:
        raise InvalidInput(
            f"{file.name} has the type, year and institution of {other.name}, which came with it, "
            "and would supersede it",
            reason_code="same_scope",
            remedy="put all rows of them into one file",
        )
    if not may_shrink:
        refuse_shrinking(file.name, replaced)
    gaps = tuple(gaps_of_file(carbon, wanted.topic, rows)) if file.kind == "data" else ()
    carbon.staging.keep(wanted.pipeline_id, file.content, rows)
    kept = carbon.store.uploads.record_after(wanted, newest)
    if kept is None:  # another upload of the scope came between: it may be this very file
        carbon.staging.remove(wanted.pipeline_id)
        return _store(carbon, file, wanted, rows, may_shrink=may_shrink, together=together)
    write_note(carbon.staging, kept)
    return Receipt(kept, known=False, jobs=_enqueue(carbon, kept), replaced=replaced, gaps=gaps)


def _known(carbon: CarbonService, wanted: Upload, rows: pa.Table, newest: Upload) -> Receipt | None:
    """Recognize the newest upload of the scope, and the one that an inbox file has become."""
    same = (newest.sha256, newest.years, newest.taken) == (wanted.sha256, wanted.years, wanted.taken)
    # The same bytes have other rows where they are read with another decimal mark.
    if same and carbon.staging.holds(newest.pipeline_id, rows):
        return Receipt(newest, known=True)
    if wanted.modified_at is None:
        return None
    found = (wanted.sha256, wanted.modified_at)
    older = (one for one in carbon.store.uploads.of_scope(wanted) if (one.sha256, one.modified_at) == found)
    return next((Receipt(one, known=True, superseded=True) for one in older), None)


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


def _jobs_of(carbon: CarbonService, kept: Upload) -> tuple[int, ...]:
    """Return the work that imported an upload that is known, as its first receipt named it."""
    members = carbon.ledger.pipelines.members([kept.pipeline_id])[kept.pipeline_id]
    return tuple(row.id for row in members if row.kind in PHASES["data"])


def _enqueue(carbon: CarbonService, kept: Upload) -> tuple[int, ...]:
    """Enqueue the work of an upload at once, so that the receipt names it; return its numbers."""
    verdicts = [v for v in carbon.plan().due if kept.pipeline_id in v.pipelines]
    report = carbon.ledger.enqueue([v.request for v in verdicts if v.request])
    return tuple(sorted(row.id for row in (*report.created, *report.updated, *report.absorbed)))


def accepted(file: File, pipeline: str, parsed: Parsed) -> Upload:
    """Return the upload that a file with these rows is to become."""
    topic, years = file.data_entry_type or "", tuple([file.year] if file.year else [])
    if parsed.frame.num_rows:
        topic = parsed.frame.column("data_entry_type")[0].as_py() if file.kind == "data" else topic
        years = tuple(parsed.years)
    return replace(
        _described(file, pipeline),
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
        _described(file, pipeline),
        topic=file.data_entry_type or "",
        # An impossible year is a problem of the file, and may be larger than a column holds.
        years=(file.year,) if file.year is not None and file.year in YEARS else (),
        accepted=False,
        problem_count=error.total,
        problems=[p.as_json() for p in error.problems],
    )


def _described(file: File, pipeline: str) -> Upload:
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
