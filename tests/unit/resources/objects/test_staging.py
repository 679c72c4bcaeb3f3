"""Kept rows of uploaded files: they are what was kept, or an error."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from domain.shared.error import InfrastructureError
from resources.objects.staging import Staging

ROWS = pa.table({"unit_id": ["A", "B"], "quantity": [1.5, 2.5]}).replace_schema_metadata({"rules": "x"})


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging.at(tmp_path.as_uri())


def test_rows__kept__come_back_as_they_were(staging: Staging) -> None:
    staging.keep("one", b"original", ROWS)
    assert staging.rows("one").equals(ROWS, check_metadata=True)
    assert staging.holds("one", ROWS)


def test_rows__any_byte_changed_on_disk__are_refused_or_the_same(staging: Staging, tmp_path: Path) -> None:
    staging.keep("one", b"", ROWS)
    path = tmp_path / "one/rows.parquet"
    whole = path.read_bytes()
    wrong = 0
    for position in range(4, len(whole) - 8):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        try:
            rows = staging.rows("one")
        except InfrastructureError:
            continue
        # A column by another name is missed by every reader.
        wrong += rows.column_names == ROWS.column_names and not rows.equals(ROWS)
    assert not wrong
