"""The chains that uploads began: what each has done, how long its phases took, and what is on its way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from domain.carbon.jobs import ALL_KINDS, KINDS
from domain.carbon.pipelines import Pipeline, pipeline, recalculating
from domain.shared.error import InvalidInput
from resources.ledger.kind_statistics import kind_statistics
from resources.ledger.model import Work
from resources.ledger.schema import COMPLETED, SKIPPED
from services.carbon.service import CarbonService
from services.carbon.upload_store import Upload


def chains(carbon: CarbonService, limit: int = 20) -> list[dict[str, Any]]:
    """Newest first."""
    uploads = carbon.store.uploads.find(limit=limit)
    members = carbon.ledger.pipelines.members([u.pipeline_id for u in uploads])
    ahead = _Ahead.of(carbon)
    return [_as_dict(u, members[u.pipeline_id], ahead) for u in uploads]


def chain(carbon: CarbonService, pipeline_id: str) -> dict[str, Any]:
    """One of them with all its work. The beginning of an id is enough where it leaves no doubt."""
    found = [u for u in carbon.store.uploads.find() if u.pipeline_id.startswith(pipeline_id.upper())]
    if len({u.pipeline_id for u in found}) != 1:
        raise InvalidInput(
            f"{len(found)} pipelines begin with {pipeline_id!r}",
            reason_code="unknown_pipeline",
            remedy="see `perennial carbon pipelines`",
        )
    [upload] = found
    rows = carbon.ledger.pipelines.members([upload.pipeline_id])[upload.pipeline_id]
    work = [
        {
            "work": row.id,
            "kind": row.kind,
            "key": row.key,
            "status": row.status,
            "reason": row.reason_code,
            "attempts": row.attempts,
            "started": row.started_at,
            "finished": row.finished_at,
            "error": row.error,
        }
        for row in rows
    ]
    return _as_dict(upload, rows, _Ahead.of(carbon)) | {"work": work, "problems": list(upload.problems)}


def unended(carbon: CarbonService, pipeline_ids: Collection[str]) -> dict[str, str]:
    """Of these chains those that have not come to their end, and why. Of one that came to it long ago no
    work is kept: nothing is left to be said of it."""
    uploads = carbon.store.uploads.find(pipeline_ids=pipeline_ids)
    members, ahead = carbon.ledger.pipelines.members(pipeline_ids), _Ahead.of(carbon)
    found = {u.pipeline_id: _why_unended(u, members[u.pipeline_id], ahead) for u in uploads}
    return {name: why for name, why in found.items() if why}


def _why_unended(upload: Upload, rows: Sequence[Work], ahead: _Ahead) -> str:
    name = upload.pipeline_id
    status = _become(upload, rows, ahead).status
    if status == "SUCCESS" or not (rows or name in ahead.coming or name in ahead.locked):
        return ""
    whys = [ahead.locked[name]] if name in ahead.locked else []
    newest = {row.key: row for row in sorted(rows, key=lambda row: row.id)}
    whys += [_in_its_way(row) for row in newest.values() if row.status not in (COMPLETED, SKIPPED)]
    return f"{upload.name}, pipeline {name}, is {status}: {'; '.join(whys) or 'the report has it not yet'}"


def _in_its_way(row: Work) -> str:
    why = (row.error or row.reason_code).strip().splitlines()
    return f"{row.key} is {row.status}" + (f": {why[0]}" if why else "")


def moving(carbon: CarbonService) -> list[str]:
    """The modules whose numbers are about to change, each with its year."""
    rows = [
        row
        for kind in KINDS
        for row in carbon.ledger.find(kind.name, status=("queued", "running"), limit=None)
    ]
    return sorted(f"{module} {year}" for module, year in recalculating(carbon.catalogue, rows))


def statistics(carbon: CarbonService, hours: int) -> list[dict[str, Any]]:
    """Throughput, durations and failures of each kind of carbon work that ended in the last hours."""
    now = carbon.clock() + timedelta(seconds=1)
    found = kind_statistics(carbon.ledger.engine, now - timedelta(hours=hours), now)
    names = {kind.name for kind in ALL_KINDS}
    return [
        {
            "kind": s.kind,
            "completed": s.completed,
            "failed": s.failed,
            "per_hour": s.completed_per_hour,
            "median_seconds": s.median_seconds,
            "p95_seconds": s.p95_seconds,
            "failure_rate": s.failure_rate,
        }
        for s in found
        if s.kind in names
    ]


@dataclass(frozen=True)
class _Ahead:
    """Chains whose numbers are not in the report yet, and those that a lock keeps out of it."""

    coming: frozenset[str]
    locked: Mapping[str, str]

    @classmethod
    def of(cls, carbon: CarbonService) -> _Ahead:
        seen = carbon.observe()
        plan = carbon.plan_of(seen)
        locked = {
            name: "; ".join(f"{year} is locked: {seen.locked[year]}" for year in sorted(years))
            for name, years in plan.locked_pipelines.items()
        }
        return cls(plan.unfinished_pipelines.difference(locked), locked)


def _become(upload: Upload, rows: Sequence[Work], ahead: _Ahead) -> Pipeline:
    name = upload.pipeline_id
    return pipeline(rows, refused=not upload.accepted, more=name in ahead.coming, locked=name in ahead.locked)


def _as_dict(upload: Upload, rows: Sequence[Work], ahead: _Ahead) -> dict[str, Any]:
    found = _become(upload, rows, ahead)
    phases = {name: span.status for name, span in found.phases.items() if span.started is not None}
    return {
        "pipeline": upload.pipeline_id,
        "upload": upload.id,
        "file": upload.name,
        "kind": upload.kind,
        "by": upload.uploaded_by,
        "uploaded": upload.uploaded_at,
        "status": found.status,
        "reason": ahead.locked.get(upload.pipeline_id, ""),
        "phases": phases,
        "seconds": found.duration.total_seconds() if found.duration else None,
    }
