"""Data files that are corrupt, missing or cannot be read now: what is said of them, how a write heals."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import fs

from domain.shared.error import TransientResourceError
from domain.shared.table import ABSENT, ALL
from resources.lake.client import Lake, MaintenanceReport
from resources.lake.damage import query_error
from resources.lake.error import DataCorrupt, DataUnavailable
from resources.objects.store import ObjectStore
from tests.unit.resources.lake.frames import (
    CODES,
    DAILY,
    WHOLE,
    data_files,
    days_from,
    on_files,
    prices,
    rows_of,
    stocks,
)

DAYS = days_from("2026-11-01", 5)
LATE = "2026-12-01"
Hurt = Callable[[Path], None]


def rot_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36  # the first pages; the footer stays whole
    path.write_bytes(content)


def rot_column_name(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"close", b"cl\xffse"))


def cut_rows(path: Path) -> None:
    """The footer stays whole and speaks of rows that are not there."""
    content = path.read_bytes()
    path.write_bytes(content[:4] + content[-(int.from_bytes(content[-8:-4], "little") + 8) :])


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def withhold(path: Path) -> None:
    """The disk refuses to open it, even for root: too many levels of links."""
    path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)


def fail_to_read(path: Path) -> None:
    """It can be opened, and reading it is an error."""
    path.rename(path.with_suffix(".whole"))
    path.mkdir()


def restore(path: Path) -> None:
    path.rmdir() if path.is_dir() else path.unlink()
    path.with_suffix(".whole").replace(path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """November's first five days in one file, a day of December in another."""
    home = tmp_path_factory.mktemp("damage") / "home"
    lake = on_files(home)
    many = tuple(f"{n:06d}.SZ" for n in range(500))
    lake.replace("market.prices", DAYS, prices(*DAYS, codes=many))
    lake.replace("market.prices", LATE, prices(LATE))
    lake.replace("market.stocks", ALL, stocks(a="x"))
    return home.rename(home.with_name("template"))


@pytest.fixture
def home(template: Path) -> Path:
    """The lake anew at its one address, to be hurt."""
    home = template.with_name("home")
    shutil.rmtree(home, ignore_errors=True)
    return Path(shutil.copytree(template, home))


def november(home: Path) -> Path:
    (path,) = [p for p in data_files(home) if "2026-11" in str(p)]
    return path


SAME_SIZE = [rot_middle, rot_column_name]
OTHER_SIZE = [cut_rows, truncate, Path.unlink]
corrupting = pytest.mark.parametrize("hurt", [*SAME_SIZE, *OTHER_SIZE])


# Corrupt


@pytest.mark.parametrize("hurt", OTHER_SIZE)
def test_versions__file_cut_or_lost__are_corrupt_at_once_and_spare_others(home: Path, hurt: Hurt) -> None:
    lake = on_files(home)
    late = lake.versions("market.prices", [*DAYS, LATE])[LATE]
    hurt(november(home))
    versions = lake.versions("market.prices", [*DAYS, LATE, "2026-11-30"])
    assert all(versions[day].corrupt for day in DAYS)
    assert (versions[LATE], versions["2026-11-30"]) == (late, ABSENT)
    assert lake.partitions("market.prices") == [*DAYS, LATE]


@pytest.mark.parametrize("hurt", SAME_SIZE)
def test_versions__bytes_changed_in_place__are_corrupt_once_a_read_has_failed(home: Path, hurt: Hurt) -> None:
    lake, other = on_files(home), on_files(home)
    before = other.versions("market.prices", DAYS)
    hurt(november(home))
    assert other.versions("market.prices", DAYS) == before, "versions are kept by file set"
    with pytest.raises(DataCorrupt):
        rows_of(lake, "market.prices")
    for reader in (lake, other):
        assert all(v.corrupt for v in reader.versions("market.prices", DAYS).values())


@corrupting
def test_read__corrupt_file__names_its_partitions(home: Path, hurt: Hurt) -> None:
    hurt(november(home))
    lake = on_files(home)
    for read in (
        lambda: lake.sql("SELECT max(trade_date) AS d, sum(close) AS c FROM market.prices"),
        lambda: rows_of(lake, "market.prices"),
    ):
        with pytest.raises(DataCorrupt) as caught:
            read()
        assert caught.value.partitions == tuple(DAYS)
    assert lake.sql("SELECT * FROM market.stocks").num_rows == 1
    late = f"SELECT * FROM market.prices WHERE trade_date = DATE '{LATE}'"
    assert lake.sql(late, partitions={"market.prices": [LATE]}).num_rows == len(CODES)


@corrupting
def test_replace__corrupt_file__heals_and_names_what_is_lost(
    home: Path, hurt: Hurt, caplog: pytest.LogCaptureFixture
) -> None:
    hurt(november(home))
    lake = on_files(home)
    with caplog.at_level(logging.WARNING):
        commit = lake.replace("market.prices", DAYS[2], prices(DAYS[2]))
    assert all(day in caplog.text for day in DAYS if day != DAYS[2])
    assert commit.changed
    assert lake.partitions("market.prices") == [DAYS[2], LATE]
    for day in DAYS:
        lake.replace("market.prices", day, prices(day))
    counted = on_files(home).sql("SELECT count(*) AS n FROM market.prices").to_pylist()
    assert counted == [{"n": 6 * len(CODES)}]


def test_merge__corrupt_rows__is_refused(home: Path) -> None:
    data_files(home, WHOLE)[0].unlink()
    lake = on_files(home)
    with pytest.raises(DataCorrupt, match=r"market.stocks"):
        lake.merge("market.stocks", stocks(b="y"))
    lake.replace("market.stocks", ALL, stocks(b="y"))
    assert lake.sql("SELECT ts_code FROM market.stocks").to_pylist() == [{"ts_code": "b"}]


# Unavailable


@pytest.mark.parametrize("hurt", [withhold, fail_to_read])
def test_versions__file_unavailable__only_its_days_wait_and_are_not_overwritten(
    home: Path, hurt: Hurt
) -> None:
    before = on_files(home).versions("market.prices", [*DAYS, LATE])
    path = november(home)
    hurt(path)
    lake = on_files(home)
    held = lake.holdings({"market.prices": [], "market.stocks": []}, and_present=True)["market.prices"]
    assert held[LATE] == before[LATE]
    assert all(path.name in held[day].unavailable and not held[day].corrupt for day in DAYS)
    assert lake.replace("market.prices", LATE, prices(LATE, scale=2)).changed
    for act in (
        lambda: rows_of(lake, "market.prices"),
        lambda: lake.replace("market.prices", DAYS[0], prices(DAYS[0])),
    ):
        with pytest.raises(DataUnavailable, match=path.name):
            act()
    restore(path)
    assert {day: lake.version("market.prices", day) for day in DAYS} == {day: before[day] for day in DAYS}


def test_versions__one_file_corrupt_and_one_unavailable__are_unavailable(home: Path) -> None:
    """Made again, the day would lose what may be whole."""
    path = november(home)
    lake = on_files(home)
    lake._writer.catalog.load("market.prices").append(prices(*DAYS, codes=["A"]).cast(DAILY.schema))
    (other,) = {p for p in data_files(home) if "2026-11" in str(p)} - {path}
    other.write_bytes(b"rot")
    withhold(path)
    assert all(v.unavailable and not v.corrupt for v in lake.versions("market.prices", DAYS).values())
    restore(path)
    assert all(v.corrupt for v in lake.versions("market.prices", DAYS).values())


def test_maintain__file_unavailable__passes_over_its_month_and_reports_it(home: Path) -> None:
    lake = on_files(home)
    for day in ("2026-12-02", "2026-11-20"):
        lake.replace("market.prices", day, prices(day))
    path = max(data_files(home), key=lambda p: p.stat().st_size)
    withhold(path)
    now = datetime.now(UTC) + timedelta(days=30)

    def maintain() -> MaintenanceReport:
        return lake.maintain(
            "market.prices", now=now, compact_before="2027-01", orphan_age=timedelta(days=60)
        )

    report = maintain()
    assert report.compacted_files == 2
    assert report.expired_snapshots > 0
    assert [path.name in why for why in report.skipped] == [True]
    restore(path)
    report = maintain()
    assert (report.compacted_files, report.skipped) == (2, [])


# An object store that refuses for a while


SLOW_DOWN = "AWS Error SLOW_DOWN (HTTP status 503) during GetObject operation"
ALWAYS = 1_000_000


class Throttled(fs.LocalFileSystem):  # type: ignore[misc]
    """The files of this machine as objects. While `refusing` is above zero each GET of a data file fails."""

    refusing = 0

    def _get(self, path: str) -> None:
        if self.refusing and path.endswith(".parquet"):
            self.refusing -= 1
            raise OSError(SLOW_DOWN)

    def open_input_stream(self, path: str, *more: Any, **named: Any) -> Any:
        self._get(path)
        return super().open_input_stream(path, *more, **named)

    def open_input_file(self, path: str) -> Any:
        self._get(path)
        return super().open_input_file(path)


@pytest.fixture
def bucket() -> Throttled:
    return Throttled()


@pytest.fixture
def cold(home: Path, bucket: Throttled, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Lake]:
    """The same lake, its files behind an object store, and no caches yet."""
    store = ObjectStore(bucket, scheme="file")
    monkeypatch.setattr("resources.lake.client.store_for", lambda _: store)
    count = iter(range(100))
    return lambda: on_files(home, home=home / f"elsewhere-{next(count)}")


def test_replace__store_refuses__is_transient_and_loses_nothing(
    cold: Callable[[], Lake], bucket: Throttled
) -> None:
    before = cold().versions("market.prices", DAYS)
    lake = cold()
    bucket.refusing = ALWAYS
    with pytest.raises(TransientResourceError, match="SLOW_DOWN") as caught:
        lake.replace("market.prices", DAYS[0], prices(DAYS[0]))
    assert caught.value.reason_code == "lake_unavailable"
    bucket.refusing = 0
    assert cold().versions("market.prices", DAYS) == before
    assert lake.replace("market.prices", DAYS[0], prices(DAYS[0])).changed
    assert cold().versions("market.prices", DAYS[1:]) == {day: before[day] for day in DAYS[1:]}


@pytest.mark.parametrize("refused", [1, ALWAYS])
def test_read__store_refuses_some_requests__is_transient_and_never_corrupt(
    cold: Callable[[], Lake], bucket: Throttled, refused: int
) -> None:
    lake = cold()
    assert lake.partitions("market.prices") == [*DAYS, LATE]
    for read in (
        lambda: lake.sql("SELECT sum(close) AS c FROM market.prices"),
        lambda: rows_of(lake, "market.prices"),
        lambda: lake.merge("market.prices", prices(DAYS[0])),
    ):
        bucket.refusing = refused
        with pytest.raises(TransientResourceError, match="SLOW_DOWN"):
            read()
    bucket.refusing = 0
    assert all(v.readable for v in lake.versions("market.prices", DAYS).values())


@pytest.mark.parametrize("refused", [1, ALWAYS])
def test_versions__store_refuses_some_requests__are_known_or_unavailable(
    cold: Callable[[], Lake], bucket: Throttled, refused: int
) -> None:
    whole = cold().versions("market.prices", DAYS)
    lake = cold()
    bucket.refusing = refused
    found = lake.versions("market.prices", DAYS)
    assert found == whole or all("SLOW_DOWN" in v.unavailable for v in found.values())
    assert (refused == ALWAYS) <= (found != whole)
    bucket.refusing = 0
    assert lake.versions("market.prices", DAYS) == whole, "an unavailable version is not kept"


def test_versions__corrupt_object__are_corrupt_and_healed_by_a_write(
    home: Path, cold: Callable[[], Lake]
) -> None:
    lake = cold()
    rot_middle(november(home))
    assert all(v.corrupt for v in lake.versions("market.prices", DAYS).values())
    assert lake.replace("market.prices", DAYS[0], prices(DAYS[0])).changed
    assert lake.partitions("market.prices") == [DAYS[0], LATE]


def test_versions__manifest_unavailable__is_not_corrupt(home: Path) -> None:
    shutil.rmtree(home / "cache")
    for manifest in home.rglob("*-m0.avro"):
        withhold(manifest)
    with pytest.raises(DataUnavailable, match=r"market.prices: a manifest of snapshot"):
        on_files(home).versions("market.prices", DAYS)


def test_query_error__out_of_memory_while_rows_stream__is_no_fault_of_a_file() -> None:
    for error in (duckdb.OutOfMemoryException("full"), OSError("Out of Memory Error: full")):
        assert getattr(query_error(error), "reason_code", "") == "out_of_memory"
