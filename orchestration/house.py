"""The house itself: can its folders be written? Asked of the disk, not guessed from rights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from domain.shared.error import PermanentRunnerError
from domain.shared.health import Finding
from orchestration.settings import Settings


def require_writable(settings: Settings) -> None:
    """Called before anything is written: later each database would say it in words of its own."""
    for finding in house_findings(settings):
        raise PermanentRunnerError(finding.reason, reason_code=finding.reason_code, remedy=finding.action)


def house_findings(settings: Settings) -> Iterator[Finding]:
    """Each folder that cannot be written."""
    folders = {"PERENNIAL_HOME": settings.home}
    if settings.warehouse.startswith("file://"):
        folders["PERENNIAL_WAREHOUSE"] = Path(settings.warehouse.removeprefix("file://"))
    for setting, folder in folders.items():
        place = next((p for p in (folder, *folder.parents) if p.exists()), folder)
        why = _unwritable(place)
        if why:
            yield Finding(
                domain="house",
                subject=str(folder),
                health="broken",
                reason_code="read_only",
                reason=f"{setting} cannot be written: {why}",
                since=_last_written(place),
                next_attempt=None,
                action=f"make {folder} writable, or set {setting} to another folder",
            )


def _last_written(folder: Path) -> datetime:
    """When something last changed there: since then, at the latest, nothing can be written."""
    newest = max(entry.stat().st_mtime for entry in (folder, *folder.iterdir()))
    return datetime.fromtimestamp(newest, UTC)


def _unwritable(folder: Path) -> str:
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "its file system is mounted read-only"
    return "" if os.access(folder, os.W_OK | os.X_OK) else "this user has no right to write there"
