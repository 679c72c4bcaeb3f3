"""Kept rows of uploaded files: they are what was kept, and of the upload that asks for them, or an error."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from domain.shared.error import InfrastructureError
from resources.objects.staging import LOST, Staging

ROWS = pa.table({"unit_id": ["A", "B"], "quantity": [1.5, 2.5]}).replace_schema_metadata({"rules": "x"})


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging.at(tmp_path.as_uri())


def test_rows_come_back_as_they_were_kept(staging: Staging) -> None:
    staging.keep("one", b"original", ROWS)
    assert staging.rows("one").equals(ROWS, check_metadata=True)
    assert staging.holds("one", ROWS)


def test_rows_that_were_put_in_the_place_of_others_are_none(staging: Staging, tmp_path: Path) -> None:
    """A restore that mixes files up would make a wrong report, and all would be called healthy."""
    staging.keep("one", b"", ROWS)
    staging.keep("two", b"", ROWS.slice(1))
    (tmp_path / "two/rows.parquet").write_bytes((tmp_path / "one/rows.parquet").read_bytes())
    with pytest.raises(InfrastructureError, match="those of another") as refused:
        staging.rows("two")
    assert refused.value.reason_code == LOST


def test_a_byte_that_the_disk_changed_makes_no_other_number(staging: Staging, tmp_path: Path) -> None:
    staging.keep("one", b"", ROWS)
    path = tmp_path / "one/rows.parquet"
    whole = path.read_bytes()
    wrong = 0
    for place in range(4, len(whole) - 8):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            rows = staging.rows("one")
        except InfrastructureError:
            continue
        # A column by another name is missed by whoever reads it.
        wrong += rows.column_names == ROWS.column_names and not rows.equals(ROWS)
    assert not wrong


def test_rows_from_before_they_said_whose_they_are_are_read(staging: Staging, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    pq.write_table(ROWS, tmp_path / "old/rows.parquet")
    assert staging.rows("old").equals(ROWS)
