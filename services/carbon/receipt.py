"""The receipt of an upload: what became of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.carbon.upload_store import Upload


@dataclass(frozen=True)
class Receipt:
    """What became of a file."""

    upload: Upload
    known: bool
    """The same file is in already: nothing was done."""
    superseded: bool = False
    """Newer uploads supersede the upload that is known."""
    jobs: tuple[int, ...] = ()
    replaced: tuple[Upload, ...] = ()
    """The uploads that this one supersedes, the oldest first."""

    @property
    def summary(self) -> str:
        one = self.upload
        if self.known:
            later = "; newer uploads supersede it" if self.superseded else ""
            return f"already in, as upload {one.id}{later}; nothing to do"
        left = f", {one.rows - one.taken:,} left out" if one.rows != one.taken else ""
        years = ", ".join(map(str, one.years))
        return f"{one.taken:,} rows of {years} taken{left}; upload {one.id}, pipeline {one.pipeline_id}"

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
            "replaced": [{"upload": old.id, "file": old.name} for old in self.replaced],
        }
