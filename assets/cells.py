"""A partition's cell: what the lake holds now, beside what was recorded of it. No Dagster here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.shared.cell import Cell
from domain.shared.table import ABSENT, Version

if TYPE_CHECKING:
    from resources.ledger.provenance import Fact


def cell_of(version: Version, fact: Fact | None) -> Cell:
    if fact is None:
        return Cell(version=version)
    return Cell(
        version=version,
        recorded=Version(fact.rows, fact.digest) if fact.rows else ABSENT,
        seen_count=fact.seen_count,
        committed_at=fact.committed_at,
        checked_at=fact.checked_at,
        inputs=fact.inputs,
        detail=fact.detail,
    )
