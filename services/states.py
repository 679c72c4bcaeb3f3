"""The state of a partition: what the lake holds now, and what was recorded of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, Version

if TYPE_CHECKING:
    from resources.ledger.provenance import PartitionRecord


def state_of(version: Version, record: PartitionRecord | None) -> PartitionState:
    if record is None:
        return PartitionState(version=version)
    return PartitionState(
        version=version,
        recorded=Version(record.rows, record.digest) if record.rows else ABSENT,
        seen_count=record.seen_count,
        committed_at=record.committed_at,
        checked_at=record.checked_at,
        inputs=record.inputs,
        detail=record.detail,
    )
