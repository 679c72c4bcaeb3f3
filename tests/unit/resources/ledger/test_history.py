"""Of a key's finished rows those that count, as a pure function: no database anywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from domain.shared.work import UNCLASSIFIED, Kind, WorkRequest
from resources.ledger.history import counting
from resources.ledger.transitions import first_generation

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
KIND = Kind("k", transient=UNCLASSIFIED)


def rows(*described: str):
    """One row for each of `f1 failed`: a fingerprint and a status."""
    found = []
    for number, (fingerprint, status) in enumerate(text.split() for text in described):
        row = first_generation(WorkRequest("k", "key", fingerprint), KIND, NOW)
        found.append(replace(row, id=number, status=status))
    return found


@pytest.mark.parametrize(
    ("described", "ids"),
    [
        ([], []),
        (["f1 failed"], [0]),
        (["f1 failed", "f2 cancelled"], [0, 1]),
        (["f1 failed", "f1 cancelled"], [1]),
        (["f1 cancelled", "f2 cancelled", "f1 cancelled"], [1, 2]),
        (["f1 failed", "f2 superseded"], [0]),
        (["f1 superseded"], []),
        (["f1 failed", "f1 superseded"], [0]),
        (["f1 failed", "f2 cancelled", "f3 completed"], [2]),
        (["f1 failed", "f2 cancelled", "f3 skipped"], [2]),
        (["f1 failed", "f2 cancelled", "f3 failed"], [2]),
        (["f1 completed", "f2 cancelled"], [0, 1]),
    ],
)
def test_counting__finished_rows__keeps_the_last_decision_on_each_fingerprint(described, ids):
    assert [row.id for row in counting(rows(*described))] == ids
