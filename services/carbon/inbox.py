"""Carbon's inbox: files that are imported as if they had been uploaded.

    units/…   factors/…   data/…

Folders between may name the year, the type and the institution: `data/plane/2025/flights.csv`.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from domain.carbon.inbox_folders import scope_of_folders
from domain.carbon.jobs import FILE_INGEST, INBOX_FILES, PRIORITY
from domain.shared.tabular.problems import FileRefused, count_of_problems
from services.carbon.service import CarbonService
from services.carbon.upload import upload
from services.carbon.uploaded_file import LARGEST, File, FileKind
from services.inbox import FileOutcome, Inbox, InboxFile

FOLDERS = ("units", "factors", "data")
"""In the order of import: data are checked against units."""


def open_inbox(folder: Path) -> Inbox:
    return Inbox(folder, FOLDERS, FILE_INGEST, INBOX_FILES, PRIORITY[FILE_INGEST], LARGEST)


def import_file(carbon: CarbonService, found: InboxFile) -> FileOutcome:
    """Upload a file; one that was imported before is recognized by content and modification time."""
    kind, *folders, name = found.path.parts
    scope = scope_of_folders(folders, carbon.catalogue.types)
    file = File(
        kind=cast("FileKind", kind),
        name=name,
        content=found.content,
        by=f"inbox, owner {found.owner}",
        institution=scope.get("institution", "main"),
        year=int(scope["year"]) if "year" in scope else None,
        data_entry_type=scope.get("type"),
        modified_at=min(found.modified_at, carbon.clock()),
    )
    try:
        receipt = upload(carbon, file)
    except FileRefused as error:
        problems = "\n".join(map(str, error.problems))
        return FileOutcome(
            False, "file_refused", f"{count_of_problems(error.total)}; nothing was imported\n{problems}"
        )
    report = "\n".join((receipt.summary, *receipt.notes))
    return FileOutcome(True, "already_known" if receipt.known else "imported", report)
