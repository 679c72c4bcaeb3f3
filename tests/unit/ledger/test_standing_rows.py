"""Of a key's finished rows those that stand, as a pure function: no database anywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.shared.backoff import Backoff
from domain.shared.work import Kind, WorkRequest
from resources.ledger.standing import NOT_NEEDED, standing
from resources.ledger.transitions import first_generation

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
KIND = Kind("k", transient=Backoff(base=timedelta(seconds=60)))


def rows(*told: str):
    """`f1 failed` is a row; `f1 superseded` one that made way, `f1 done_meanwhile` one nobody needed."""
    found = []
    for number, words in enumerate(told):
        fingerprint, status = words.split()
        row = first_generation(WorkRequest("k", "key", fingerprint), KIND, NOW)
        made_way = status in NOT_NEEDED
        status, reason = ("cancelled", status) if made_way else (status, "why")
        found.append(replace(row, id=number, status=status, reason_code=reason))
    return found


@pytest.mark.parametrize(
    ("told", "stand"),
    [
        ([], []),
        (["f1 failed"], [0]),
        (["f1 failed", "f2 cancelled"], [0, 1]),
        (["f1 failed", "f1 cancelled"], [1]),
        (["f1 cancelled", "f2 cancelled", "f1 cancelled"], [1, 2]),
        (["f1 failed", "f2 superseded"], [0]),
        (["f1 superseded"], []),
        (["f1 done_meanwhile"], []),
        (["f1 failed", "f1 done_meanwhile"], [0]),
        (["f1 failed", "f2 cancelled", "f3 completed"], [2]),
        (["f1 failed", "f2 cancelled", "f3 skipped"], [2]),
        (["f1 failed", "f2 cancelled", "f3 failed"], [2]),
        (["f1 completed", "f2 cancelled"], [0, 1]),
    ],
)
def test_a_verdict_ends_all_before_it_and_a_row_called_off_only_its_own_wish(told, stand):
    assert [row.id for row in standing(rows(*told))] == stand
