"""Kept rows of files that were lost, kept again when the very same file comes again."""

from __future__ import annotations

import pyarrow as pa

from assets.carbon.carbon import Carbon
from domain.carbon.jobs import KIND_OF
from domain.carbon.tables import FACTORS
from domain.shared.error import InfrastructureError
from resources.ledger.uploads import Upload
from resources.staging import LOST


def mend_staged(carbon: Carbon, wanted: Upload, content: bytes, rows: pa.Table) -> Upload | None:
    """A year's factors are made of all files that ever brought some: one whose rows are lost would stand in
    their way for ever, whatever came after it. Of anything else the newest file is enough.

    What is given back is the upload that has its rows again and that newer ones came after: there it stays,
    or the old file's factors would take the place of theirs."""
    if wanted.kind != "factors":
        return None
    mended = []
    for one in carbon.ledger.uploads.find(kind=wanted.kind, accepted=True):
        same = (one.sha256, one.years, one.taken) == (wanted.sha256, wanted.years, wanted.taken)
        if same and not _is_there(carbon, one):
            carbon.staging.remove(one.pipeline_id)
            carbon.staging.keep(one.pipeline_id, content, rows)
            mended.append(one)
    newest = carbon.ledger.uploads.newest_of(wanted)
    last = max(mended, key=lambda one: one.id, default=None)
    return last if last is not None and newest is not None and last.id < newest.id else None


def retry_with(carbon: Carbon, mended: Upload) -> tuple[int, ...]:
    """The work that was given up for want of these rows."""
    keys = [f"{FACTORS.table}:{year}" for year in mended.years]
    newest = [row for key in keys for row in carbon.ledger.find(KIND_OF[FACTORS.table], key, limit=1)]
    lost = [row for row in newest if row.status == "failed" and row.reason_code == LOST]
    return tuple(carbon.ledger.retry(row.id).id for row in lost)


def _is_there(carbon: Carbon, one: Upload) -> bool:
    try:
        carbon.staging.rows(one.pipeline_id)
    except InfrastructureError as error:
        if error.reason_code != LOST:
            raise
        return False
    return True
