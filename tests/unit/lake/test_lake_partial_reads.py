"""A statement that needs some partitions opens the files of those, so damage elsewhere does not matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.shared.error import InvalidInput
from resources.lake.error import DataCorrupt
from tests.unit.lake.frames import data_files, on_files, prices

WHOLE_DAY, ROTTEN_DAY = "2026-11-02", "2026-12-01"
COUNT = f"SELECT count(*) AS n FROM market.prices WHERE trade_date = DATE '{WHOLE_DAY}'"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two days in two files, of which one is rotten."""
    lake = on_files(tmp_path)
    for day in (WHOLE_DAY, ROTTEN_DAY):
        lake.replace("market.prices", day, prices(day))
    (rotten,) = [path for path in data_files(tmp_path) if "2026-12" in str(path)]
    rotten.write_bytes(rotten.read_bytes()[:100])
    return tmp_path


def test_named_partitions_are_read_past_the_damage_of_others(home: Path) -> None:
    found = on_files(home).sql(COUNT, partitions={"market.prices": [WHOLE_DAY]})
    assert found["n"].to_pylist() == [prices(WHOLE_DAY).num_rows]


def test_without_names_the_damage_is_told(home: Path) -> None:
    with pytest.raises(DataCorrupt, match=ROTTEN_DAY):
        on_files(home).sql("SELECT count(DISTINCT trade_date) FROM market.prices")


def test_a_named_partition_that_is_damaged_is_an_error(home: Path) -> None:
    with pytest.raises(DataCorrupt, match=ROTTEN_DAY):
        on_files(home).sql(
            f"SELECT * FROM market.prices WHERE trade_date = DATE '{ROTTEN_DAY}'",
            partitions={"market.prices": [WHOLE_DAY, ROTTEN_DAY]},
        )


def test_partitions_of_an_unknown_table_are_refused(home: Path) -> None:
    with pytest.raises(InvalidInput, match="no table"):
        on_files(home).sql("SELECT 1", partitions={"market.price": [WHOLE_DAY]})
