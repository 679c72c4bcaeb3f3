"""A store that does not answer for a while: nothing is called damaged, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import fs

from domain.shared.error import TransientResourceError
from resources.lake.client import Lake, MaintenanceReport
from resources.lake.engine import engine_error
from resources.lake.error import DataCorrupt, DataUnavailable
from resources.lake.lent import LentFilesystem
from resources.lake.store import ObjectStore
from tests.unit.lake.frames import DAILY, TABLES, data_files, days_from, on_files, prices

DAYS = days_from("2026-11-01", 3)
SLOW_DOWN = "AWS Error SLOW_DOWN (HTTP status 503) during GetObject operation"


class Throttled(fs.FileSystemHandler):  # type: ignore[misc]
    """The files of this machine as objects. While `refusing` is above zero each GET of a data file fails."""

    def __init__(self) -> None:
        self._disk = fs.LocalFileSystem()
        self.refusing = 0

    def refuse(self) -> None:
        if self.refusing:
            self.refusing -= 1
            raise OSError(SLOW_DOWN)

    def get_type_name(self) -> str:
        return "throttled"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._disk.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._disk.get_file_info(selector)

    def open_input_stream(self, path: str) -> Any:
        return self._disk.open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return pa.PythonFile(Object(self, self._disk.open_input_file(path)), mode="r")

    def _unused(self, *_: Any) -> None:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _unused
    move = copy_file = open_output_stream = open_append_stream = _unused


class Object:
    def __init__(self, bucket: Throttled, file: Any) -> None:
        self._bucket = bucket
        self._file = file

    def read(self, size: int = -1) -> bytes:
        self._bucket.refuse()
        content: bytes = self._file.read(size)
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


ALWAYS = 1_000_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three days in one file."""
    many = tuple(f"{n:06d}.SZ" for n in range(500))
    on_files(tmp_path).replace_range("market.prices", DAYS, prices(*DAYS, codes=many))
    return tmp_path


@pytest.fixture
def bucket() -> Throttled:
    return Throttled()


@pytest.fixture
def cold(home: Path, bucket: Throttled, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Lake]:
    """The same lake, its files behind an object store, and nothing of it noted yet."""
    store = ObjectStore(fs.PyFileSystem(bucket), scheme="file")
    monkeypatch.setattr("resources.lake.client.store_for", lambda _: store)
    count = iter(range(100))
    return lambda: Lake.open(
        catalog_url=f"sqlite:///{home}/lake/catalog.db",
        warehouse=f"file://{home}/lake/warehouse",
        home=home / f"elsewhere-{next(count)}",
        tables=TABLES,
    )


def test_a_write_is_refused_while_the_store_does_not_answer_and_loses_nothing(
    cold: Callable[[], Lake], bucket: Throttled
) -> None:
    lake = cold()
    before, snapshot = lake.versions("market.prices", DAYS), lake.snapshot_id("market.prices")
    bucket.refusing = ALWAYS
    with pytest.raises(TransientResourceError, match=r"cannot be read now.*SLOW_DOWN") as caught:
        lake.replace("market.prices", DAYS[0], prices(DAYS[0]))
    assert caught.value.reason_code == "lake_unreadable"
    assert "store" in caught.value.remedy
    bucket.refusing = 0
    assert lake.snapshot_id("market.prices") == snapshot
    assert cold().versions("market.prices", DAYS) == before
    assert lake.replace("market.prices", DAYS[0], prices(DAYS[0])).changed
    others = DAYS[1:]
    assert cold().versions("market.prices", others) == {day: before[day] for day in others}


@pytest.mark.parametrize("refused", [1, 2, 3, ALWAYS])
def test_a_day_that_could_not_be_read_is_not_damaged(
    cold: Callable[[], Lake], bucket: Throttled, refused: int
) -> None:
    lake = cold()
    assert lake.partitions("market.prices") == DAYS
    bucket.refusing = refused
    for reconcile in (
        lambda: lake.sql("SELECT sum(close) AS c FROM market.prices"),
        lambda: lake.query("SELECT sum(close) AS c FROM market.prices"),
        lambda: lake.scan("market.prices").read_all(),
        lambda: lake.merge("market.prices", prices(DAYS[0])),
    ):
        bucket.refusing = refused
        with pytest.raises(TransientResourceError, match="SLOW_DOWN"):
            reconcile()
    bucket.refusing = 0
    assert not any(v.corrupt for v in lake.versions("market.prices", DAYS).values())
    assert lake.scan("market.prices").read_all().num_rows == 1500


@pytest.mark.parametrize("refused", [1, 2, 3, ALWAYS])
def test_what_a_day_holds_is_not_known_while_it_cannot_be_read(
    cold: Callable[[], Lake], bucket: Throttled, refused: int
) -> None:
    whole = cold().versions("market.prices", DAYS)
    lake = cold()
    bucket.refusing = refused
    found = lake.versions("market.prices", DAYS)
    unavailable = [v for v in found.values() if v.unavailable]
    assert not any(v.corrupt for v in found.values())
    assert all("SLOW_DOWN" in v.unavailable for v in unavailable)
    assert found == whole if not unavailable else len(unavailable) == 3
    assert (refused == ALWAYS) <= bool(unavailable)
    bucket.refusing = 0
    assert lake.versions("market.prices", DAYS) == whole, "nothing of the trouble is remembered"


def withhold(path: Path) -> None:
    """The disk does not even say what it is, whoever asks: too many levels of links."""
    path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)


def fail_to_read(path: Path) -> None:
    """It is there, and reading it is an error."""
    path.rename(path.with_suffix(".whole"))
    path.mkdir()


def mend(path: Path) -> None:
    path.rmdir() if path.is_dir() else path.unlink()
    path.with_suffix(".whole").replace(path)


LATER = days_from("2026-12-01", 2)


@pytest.mark.parametrize("hurt", [withhold, fail_to_read])
def test_a_file_that_cannot_be_read_is_told_of_its_own_days_and_no_others(
    home: Path, hurt: Callable[[Path], None]
) -> None:
    (path,) = data_files(home)
    on_files(home).replace_range("market.prices", LATER, prices(*LATER))
    before = on_files(home).versions("market.prices", [*DAYS, *LATER])
    hurt(path)
    shutil.rmtree(home / "cache")
    lake = on_files(home)
    held = lake.holdings({"market.prices": [], "market.stocks": []}, and_present=True)["market.prices"]
    assert {day: held[day] for day in LATER} == {day: before[day] for day in LATER}
    assert all(path.name in held[day].unavailable and not held[day].corrupt for day in DAYS)
    assert lake.replace("market.prices", LATER[0], prices(LATER[0], scale=2)).changed
    with pytest.raises(DataUnavailable, match=path.name):
        lake.replace("market.prices", DAYS[0], prices(DAYS[0]))
    mend(path)
    assert {day: lake.version("market.prices", day) for day in DAYS} == {day: before[day] for day in DAYS}


def test_a_day_in_a_damaged_file_and_an_unread_one_is_not_called_damaged(home: Path) -> None:
    """Else it would be fetched again, and what may be whole would go with what is not."""
    (path,) = data_files(home)
    lake = on_files(home)
    lake._writer.catalog.load("market.prices").append(prices(*DAYS, codes=["A"]).cast(DAILY.schema))
    (other,) = set(data_files(home)) - {path}
    other.write_bytes(b"rot")
    withhold(path)
    assert all(v.unavailable and not v.corrupt for v in lake.versions("market.prices", DAYS).values())
    mend(path)
    assert all(v.corrupt for v in lake.versions("market.prices", DAYS).values())


def test_upkeep_passes_over_a_month_that_cannot_be_read_and_tells_of_it(home: Path) -> None:
    lake = on_files(home)
    for day in LATER:
        lake.replace("market.prices", day, prices(day))
    lake.replace("market.prices", "2026-11-04", prices("2026-11-04"))
    path = min(data_files(home), key=lambda p: ("2026-12" in str(p), -p.stat().st_size))
    withhold(path)
    now = datetime.now(UTC) + timedelta(days=30)

    def maintain() -> MaintenanceReport:
        return lake.maintain(
            "market.prices", now=now, compact_before="2027-01", orphan_age=timedelta(days=60)
        )

    report = maintain()
    assert (report.compacted_files, report.written_files, report.corrupt_files) == (2, 1, ())
    assert report.expired_snapshots > 0
    assert len(report.unavailable) == 1
    assert path.name in report.unavailable[0]
    mend(path)
    report = maintain()
    assert (report.compacted_files, report.unavailable) == (2, ())


def rot(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)


def lead_beyond_the_end(path: Path) -> None:
    """The footer stays whole and speaks of rows that are not there."""
    content = path.read_bytes()
    path.write_bytes(content[:4] + content[-(int.from_bytes(content[-8:-4], "little") + 8) :])


@pytest.mark.parametrize("hurt", [rot, lead_beyond_the_end, Path.unlink])
def test_an_object_whose_bytes_do_not_decode_or_that_is_gone_is_damaged(
    home: Path, cold: Callable[[], Lake], hurt: Callable[[Path], None]
) -> None:
    lake = cold()
    (path,) = data_files(home)
    hurt(path)
    assert all(v.corrupt for v in lake.versions("market.prices", DAYS).values())
    with pytest.raises(DataCorrupt):
        lake.scan("market.prices").read_all()
    assert lake.replace("market.prices", DAYS[0], prices(DAYS[0])).changed
    assert lake.partitions("market.prices") == DAYS[:1]


def test_a_local_file_that_cannot_be_opened_is_not_damaged(home: Path) -> None:
    (path,) = data_files(home)
    whole = path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)  # the disk says no, whoever asks: too many levels of links
    lake = on_files(home)
    for act in (
        lambda: lake.scan("market.prices").read_all(),
        lambda: lake.replace("market.prices", DAYS[0], prices(DAYS[0])),
    ):
        with pytest.raises(DataUnavailable, match=path.name):
            act()
    whole.replace(path)
    assert lake.partitions("market.prices") == DAYS
    assert lake.scan("market.prices").read_all().num_rows == 1500


def test_a_manifest_that_cannot_be_opened_is_not_damaged(home: Path, cold: Callable[[], Lake]) -> None:
    for manifest in home.rglob("*-m0.avro"):
        manifest.unlink()
        manifest.symlink_to(manifest)
    with pytest.raises(DataUnavailable, match=r"market.prices: a manifest of snapshot"):
        cold().versions("market.prices", DAYS)


def test_memory_that_runs_out_while_rows_stream_is_no_trouble_of_a_file() -> None:
    for error in (duckdb.OutOfMemoryException("full"), OSError("Out of Memory Error: full")):
        assert getattr(engine_error(error), "reason_code", "") == "out_of_memory"


def test_each_thread_has_its_own_place_in_a_lent_file(tmp_path: Path) -> None:
    (tmp_path / "letters").write_bytes(b"abcdefghij")
    lent = LentFilesystem(fs.LocalFileSystem(), "lent")
    with lent.open(f"lent://{tmp_path}/letters") as file, ThreadPoolExecutor(1) as other:
        assert file.seek(2) == 2
        assert other.submit(file.seek, 7).result() == 7
        assert (file.read(3), other.submit(file.read, 2).result(), file.tell()) == (b"cde", b"hi", 5)
        assert (file.seek(99), file.read(5), lent.trouble) == (99, b"", []), "nothing is there: no trouble"
