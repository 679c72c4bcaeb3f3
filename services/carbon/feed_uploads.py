"""What is read of a scope of an application becomes an upload, checked like a file.

Of entries the good ones are imported, and wrong ones are listed. Units and factors are taken whole or not at
all: a unit without its parent, or a factor that is left out, would change results that nobody looks at.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from domain.carbon.feeds import FeedChange
from domain.shared.error import InvalidInput
from domain.shared.names import LONGEST
from domain.shared.tabular.problems import FileRefused, count_of_problems
from domain.shared.work import Work
from services.carbon.replacements import WouldShrink
from services.carbon.service import CarbonService
from services.carbon.upload import Receipt, upload, upload_nothing
from services.carbon.uploaded_file import File, FileKind

MAY_SHRINK = "may_shrink"
"""A person accepts that a scope has less than half of its rows: in the params of their request."""
_FILE_KINDS: Mapping[str, FileKind] = {"units": "units", "factors": "factors", "entries": "data"}
_LISTED = 3
"""Wrong rows that an error names."""


@dataclass(frozen=True)
class ReadScope:
    """What one scope came to."""

    scope: str
    version: str
    rows: int
    refused: int
    upload: int
    left_out: Mapping[str, Any]
    """How many entries are refused, of how many, and the first of them; empty if none is."""


def import_scope(carbon: CarbonService, change: FeedChange, work: Work) -> ReadScope:
    """Read a scope as it is now, and upload it. Its upload begins the pipeline that its work was given, or a
    new one."""
    feed = carbon.feeds[change.source]
    found = feed.read(change.kind, change.year, change.institution, change.data_entry_type)
    content = io.BytesIO()
    pq.write_table(found.rows, content, compression="zstd")
    file = File(
        kind=_FILE_KINDS[change.kind],
        name=change.name,
        content=content.getvalue(),
        by=feed.shown_url[:LONGEST],
        institution=change.institution,
        source=change.source,
        year=change.year,
        data_entry_type=change.data_entry_type or None,
        mark="point",
    )
    may_shrink = change.kind == "entries" or bool(work.params.get(MAY_SHRINK))
    try:
        receipt = _upload(
            carbon, file, found.rows.num_rows, _free_pipeline(carbon, work), may_shrink=may_shrink
        )
    except WouldShrink as error:
        words = " ".join(filter(None, (change.kind, str(change.year), change.data_entry_type)))
        raise InvalidInput(
            error.message,
            reason_code="feed_shrank",
            remedy=f"correct it there; or `perennial carbon pull {words} --replace` if that is right",
        ) from error
    kept, pipelines = receipt.upload, carbon.ledger.pipelines
    # The pipeline of a request for several partitions is begun by no upload; it has what imports each.
    for job in () if receipt.known else receipt.jobs:
        pipelines.add(job, pipelines.of([work.id]).get(work.id, ()))
    pipelines.add(work.id, [kept.pipeline_id])
    # Rows may be newer than the version that the poll noted; then they need not be read again.
    carbon.store.feed_contents.mark_read(change, found.version)
    left_out = kept.rows - kept.taken
    refused = {"entries": left_out, "of": kept.rows, "first": list(kept.problems[:_LISTED])}
    return ReadScope(change.scope, found.version, kept.taken, left_out, kept.id, refused if left_out else {})


def _upload(
    carbon: CarbonService, file: File, rows: int, pipeline: str | None, *, may_shrink: bool
) -> Receipt:
    of_entries = file.kind == "data"
    if not rows and file.kind == "factors":
        raise InvalidInput(
            f"{file.name} from {file.by} are none; those that are there stay",
            reason_code="rows_refused",
            remedy="list them in the application, or leave the type out of its changes",
        )
    if not rows:
        return upload_nothing(carbon, file, may_shrink=may_shrink, pipeline=pipeline)
    try:
        return upload(carbon, file, accept_valid=of_entries, may_shrink=may_shrink, pipeline=pipeline)
    except FileRefused as error:
        problems = count_of_problems(error.total)
        raise InvalidInput(
            f"{file.name} from {file.by}: {problems}: {'; '.join(map(str, error.problems[:_LISTED]))}",
            reason_code="entries_refused" if of_entries else "rows_refused",
            remedy="correct them in the application; they are read again once it reports a change",
        ) from error


def _free_pipeline(carbon: CarbonService, work: Work) -> str | None:
    """Return a pipeline that a request gave to this work alone, and that no upload began yet."""
    names = carbon.ledger.pipelines.of([work.id]).get(work.id, ())
    if not names:
        return None
    begun = {one.pipeline_id for one in carbon.store.uploads.find(pipeline_ids=names)}
    members = carbon.ledger.pipelines.members(set(names) - begun)
    return min((name for name, rows in members.items() if {r.key for r in rows} == {work.key}), default=None)
