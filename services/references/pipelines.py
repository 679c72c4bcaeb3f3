"""Scrape runs as pipelines: what each found, and whether it came to its end."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from domain.shared.pipeline import Status

if TYPE_CHECKING:
    from services.references.service import ReferencesService
    from services.references.store import ScrapeRun

LONGEST = timedelta(hours=6)
"""A scrape that has not ended after so long was killed."""


def view_pipelines(
    service: ReferencesService,
    ids: Collection[str] | None = None,
    *,
    before: str | None = None,
    limit: int = 100,
) -> dict[str, dict[str, Any]]:
    """Return what is known of these scrape runs, or of the newest, by id; others are not among them."""
    runs = service.store.find_runs(ids, before=before, limit=limit)
    return {run.id: _view(run, service.clock()) for run in runs}


def _view(run: ScrapeRun, now: datetime) -> dict[str, Any]:
    view = {
        "source": run.source,
        "by": run.requested_by,
        "scrape": run.status,
        "started": run.started_at,
        "finished": run.finished_at,
        "counts": dict(run.counts),
        "reason": run.error or run.reason_code,
    }
    status = _status(run, now)
    return view | {"status": status} if status else view


def _status(run: ScrapeRun, now: datetime) -> Status | None:
    """None where its hand-offs and their jobs decide."""
    if run.status == "running" and now - run.started_at < LONGEST:
        return "RUNNING"
    handed = any(run.counts.get(f"handoff_{name}_count") for name in ("queued", "completed", "failed"))
    if run.status == "completed":
        return None if handed else "SUCCESS"
    return "PARTIAL" if handed else "FAILED"
