"""Kept rows of files that were lost, kept again when the very same file comes again."""

from __future__ import annotations

import pyarrow as pa

from assets.carbon.carbon import Carbon
from domain.shared.error import InfrastructureError
from resources.ledger.uploads import Upload
from resources.staging import LOST


def mend_staged(carbon: Carbon, wanted: Upload, content: bytes, rows: pa.Table) -> None:
    """A year's factors are made of all files that ever brought some: one whose rows are lost would stand in
    their way for ever, whatever came after it. Of anything else the newest file is enough."""
    if wanted.kind != "factors":
        return
    for one in carbon.ledger.uploads.find(kind=wanted.kind, accepted=True):
        same = (one.sha256, one.years, one.taken) == (wanted.sha256, wanted.years, wanted.taken)
        if same and not _is_there(carbon, one):
            carbon.staging.remove(one.pipeline_id)
            carbon.staging.keep(one.pipeline_id, content, rows)


def _is_there(carbon: Carbon, one: Upload) -> bool:
    try:
        carbon.staging.rows(one.pipeline_id)
    except InfrastructureError as error:
        if error.reason_code != LOST:
            raise
        return False
    return True
