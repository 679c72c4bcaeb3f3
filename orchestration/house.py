"""The house itself: can its folders be written? Asked of the disk, not guessed from rights."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from domain.shared.error import PermanentRunnerError
from domain.shared.health import Finding
from orchestration.settings import Settings

LEAST_ROOM = 1 << 20
"""Bytes. With less not even the databases of an empty house fit."""

_REMEDIES = {"read_only": "make {} writable", "disk_full": "free disk space below {}"}


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
        place = next((p for p in (folder, *folder.parents) if os.path.exists(p)), folder)  # noqa: PTH110
        code, why = _unwritable(place)
        if code:
            yield Finding(
                domain="house",
                subject=str(folder),
                health="broken",
                reason_code=code,
                reason=f"{setting} cannot be written: {why}",
                since=_last_written(place),
                next_attempt=None,
                action=f"{_REMEDIES[code].format(folder)}, or set {setting} to another folder",
            )


def _last_written(place: Path) -> datetime:
    """When something last changed there: since then, at the latest, nothing can be written."""
    newest = place.stat().st_mtime
    with contextlib.suppress(OSError):  # a file, or a folder that cannot be listed
        newest = max([newest, *(entry.stat().st_mtime for entry in place.iterdir())])
    return datetime.fromtimestamp(newest, UTC)


def _unwritable(place: Path) -> tuple[str, str]:
    """Reason code and words; both empty if it can be written."""
    if not place.is_dir():
        return "read_only", f"{place} is no folder"
    disk = os.statvfs(place)
    if disk.f_flag & os.ST_RDONLY:
        return "read_only", "its file system is mounted read-only"
    if not os.access(place, os.W_OK | os.X_OK):
        return "read_only", "this user has no right to write there"
    # Some network file systems know no sizes: they say 0 of 0.
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < LEAST_ROOM:
        return "disk_full", "its file system is full"
    return "", ""
