"""The pipelines that uploads began: what each has done, how long its phases took, what is still to come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from domain.carbon.jobs import ALL_KINDS, KINDS
from domain.carbon.pipelines import (
    Pipeline,
    locked_pipelines,
    pipeline,
    recalculating,
    unfinished_pipelines,
)
from domain.shared.error import InvalidInput
from domain.shared.work import COMPLETED, SKIPPED, Work
from resources.ledger.kind_statistics import kind_statistics
from services.carbon.service import CarbonService
from services.carbon.upload_store import Upload


@dataclass(frozen=True)
class UploadPipeline:
    upload: Upload
    work: Sequence[Work]
    state: Pipeline
    locked: str
    """Why locked years keep its numbers out of their reports; empty if none does."""

    @property
    def failure(self) -> str:
        """Why its numbers are not in the report; empty if they are."""
        if self.state.status == "SUCCESS":
            return ""
        newest = {row.key: row for row in sorted(self.work, key=lambda row: row.id)}
        open_rows = [row for row in newest.values() if row.status not in (COMPLETED, SKIPPED)]
        why = "; ".join([self.locked] * bool(self.locked) + [_open(row) for row in open_rows])
        name = f"{self.upload.name}, pipeline {self.upload.pipeline_id}"
        return f"{name}, is {self.state.status}: {why or 'the report has it not yet'}"

    def as_json(self) -> dict[str, Any]:
        spans, duration = self.state.phases.items(), self.state.duration
        return {
            "pipeline": self.upload.pipeline_id,
            "upload": self.upload.id,
            "file": self.upload.name,
            "kind": self.upload.kind,
            "by": self.upload.uploaded_by,
            "uploaded": self.upload.uploaded_at,
            "status": self.state.status,
            "reason": self.locked,
            "phases": {name: span.status for name, span in spans if span.started is not None},
            "seconds": duration.total_seconds() if duration else None,
        }


def list_pipelines(carbon: CarbonService, limit: int = 20) -> list[UploadPipeline]:
    return _pipelines_of(carbon, carbon.store.uploads.find(limit=limit))


def find_pipelines(carbon: CarbonService, pipeline_ids: Collection[str]) -> list[UploadPipeline]:
    return _pipelines_of(carbon, carbon.store.uploads.find(pipeline_ids=pipeline_ids))


def view_pipelines(
    carbon: CarbonService, ids: Collection[str] | None = None, *, before: str | None = None, limit: int = 100
) -> dict[str, dict[str, Any]]:
    """Return what carbon knows of these pipelines, or of its newest, by id; others are not among them."""
    names = carbon.store.uploads.pipelines(before=before, limit=limit) if ids is None else ids
    return {one.upload.pipeline_id: one.as_json() for one in find_pipelines(carbon, names)}


def find_pipeline(carbon: CarbonService, beginning: str) -> UploadPipeline:
    """Return the one pipeline whose id begins like that."""
    found = [u for u in carbon.store.uploads.find() if u.pipeline_id.startswith(beginning.upper())]
    if len(found) != 1:
        raise InvalidInput(
            f"{len(found)} pipelines begin with {beginning!r}",
            reason_code="unknown_pipeline",
            remedy="see `perennial carbon pipelines`",
        )
    return _pipelines_of(carbon, found)[0]


def _pipelines_of(carbon: CarbonService, uploads: Sequence[Upload]) -> list[UploadPipeline]:
    if not uploads:
        return []
    members = carbon.ledger.pipelines.members([u.pipeline_id for u in uploads])
    seen = carbon.observe()
    plan = carbon.plan_of(seen)
    unfinished, locked_years = unfinished_pipelines(plan), locked_pipelines(plan)

    def one(upload: Upload) -> UploadPipeline:
        name = upload.pipeline_id
        rows, years = members[name], sorted(locked_years.get(name, ()))
        locked = "; ".join(f"{year} is locked: {seen.locked[year]}" for year in years)
        more = name in unfinished and not years
        state = pipeline(rows, refused=not upload.accepted, more=more, locked=bool(years))
        if upload.accepted and not rows and name not in unfinished:
            # A newer upload superseded it before any work began, or its work was purged.
            state = replace(state, status="SUCCESS")
        return UploadPipeline(upload, rows, state, locked)

    return [one(upload) for upload in uploads]


def _open(row: Work) -> str:
    why = (row.error or row.reason_code).strip().splitlines()
    return f"{row.key} is {row.status}" + (f": {why[0]}" if why else "")


def changing_modules(carbon: CarbonService) -> list[str]:
    """Return the modules whose numbers are about to change, each with its year."""
    moving = ("queued", "running")
    rows = [row for kind in KINDS for row in carbon.ledger.find(kind.name, status=moving, limit=None)]
    return sorted(f"{module} {year}" for module, year in recalculating(carbon.catalogue, rows))


def statistics(carbon: CarbonService, hours: int) -> list[dict[str, Any]]:
    """Throughput, durations and failures of each kind of carbon work that ended in the last hours."""
    now = carbon.clock() + timedelta(seconds=1)
    names = {kind.name for kind in ALL_KINDS}
    found = kind_statistics(carbon.ledger.engine, now - timedelta(hours=hours), now)
    return [asdict(one) for one in found if one.kind in names]
