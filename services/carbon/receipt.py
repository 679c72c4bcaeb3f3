"""The receipt of an upload: what became of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.carbon.upload_store import Upload


@dataclass(frozen=True)
class Receipt:
    """What became of a file. `known`: the very same file is the newest already, nothing was done. `restored`:
    it restored the lost rows of this earlier upload; `superseded`: newer uploads still supersede that.
    `replaced`: the uploads that it supersedes, oldest first."""

    upload: Upload
    known: bool
    restored: bool = False
    superseded: bool = False
    jobs: tuple[int, ...] = ()
    replaced: tuple[Upload, ...] = ()

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
            "restored": self.restored,
            "superseded": self.superseded,
            "jobs": list(self.jobs),
            "replaced": [{"upload": old.id, "file": old.name} for old in self.replaced],
        }
