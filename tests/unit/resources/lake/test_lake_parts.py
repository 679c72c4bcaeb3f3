"""The smaller parts: hashes that never change, addresses, the object store's seam, pyiceberg's insides."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyiceberg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.shared.error import InvalidInput
from domain.shared.table import Column, Table
from resources.lake.content_hash import versions_of
from resources.lake.engine import Engine
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.location import LakeLocation
from resources.objects.store import Store
from tests.unit.resources.lake.frames import DAILY, WHOLE, on_files, prices, rows_of, stocks, version_of

MON = "2026-11-16"
EVERY_TYPE = Table(
    name="test.every_type",
    description="One column of each type.",
    columns=tuple(
        Column(str(kind).split("[")[0].split("(")[0], kind, "x")
        for kind in (
            pa.bool_(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.date32(),
            pa.time64("us"),
            pa.timestamp("us", tz="UTC"),
            pa.string(),
            pa.binary(),
            pa.decimal128(20, 3),
        )
    ),
    key=("int64",),
)
VALUES = [True, -5, 2**40, 0.5, 1 / 3, date(2026, 11, 16), datetime(2026, 1, 1, 7, tzinfo=UTC).time()]
VALUES += [datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC), "中文", b"\x00\xff", Decimal("-12.340")]


def every_type() -> pa.Table:
    rows = [
        dict(zip(EVERY_TYPE.schema.names, VALUES, strict=True)),
        dict.fromkeys(EVERY_TYPE.schema.names) | {"int64": 1},
    ]
    return pa.Table.from_pylist(rows, schema=EVERY_TYPE.schema)


def test_version_of__fixed_frames__is_as_ever() -> None:
    """Recorded in ledgers and run metadata: if these change, every consumer of every table becomes due."""
    assert str(version_of(DAILY, prices(MON))) == "4:6b335cb0d556f042"
    assert str(version_of(WHOLE, stocks(a="x", b="y"))) == "2:81b031ac4890ad45"
    assert str(version_of(EVERY_TYPE, every_type())) == "2:50ba75152be65644"


def test_replace__every_type__comes_back_as_it_went(tmp_path: Path) -> None:
    lake = on_files(tmp_path, tables=(EVERY_TYPE,))
    commit = lake.replace("test.every_type", "ALL", every_type())
    assert (
        rows_of(lake, "test.every_type").sort_by("int64").to_pylist()
        == every_type().sort_by("int64").to_pylist()
    )
    for cache in (tmp_path / "cache").rglob("*.json"):
        cache.unlink()
    assert on_files(tmp_path, tables=(EVERY_TYPE,)).versions("test.every_type", ["ALL"]) == commit.versions


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", ""]), st.none() | st.floats(allow_nan=True))
)


@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_versions_of__rows_in_any_order_and_batches__are_equal(
    rows: list[tuple[int, str, float | None]], random: object, cuts: int
) -> None:
    def frame(some: list[tuple[int, str, float | None]]) -> pa.Table:
        days = [date(2026, 11, 1 + day) for day, _, _ in some]
        columns = {"close": [c for _, _, c in some], "ts_code": [t for _, t, _ in some], "trade_date": days}
        kinds = {"close": pa.float64(), "ts_code": pa.string(), "trade_date": pa.date32()}
        return pa.table({n: pa.array(v, kinds[n]) for n, v in columns.items()})

    whole = versions_of(DAILY, [frame(rows)])
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    parts = [frame(mixed[n::cuts]).select(["trade_date", "ts_code", "close"]) for n in range(cuts)]
    assert versions_of(DAILY, parts) == whole
    if rows:
        assert versions_of(DAILY, [frame([*rows, rows[0]])]) != whole


def test_private_parts__pyiceberg_upgraded__are_to_be_read_again() -> None:
    """After an upgrade: compare each private name in resources/lake/iceberg_commit.py with the source."""
    assert pyiceberg.__version__ == "0.12.0"


def test_private_parts__of_pyiceberg__are_used_in_one_module() -> None:
    """pyiceberg names that begin with an underscore, and functions of its own modules beside the API."""
    private = re.compile(r"pyiceberg[\w.]* import .*\b_\w+|SLF001|_do_commit|data_file_statistics_from")
    users = [p.name for p in Path("resources/lake").glob("*.py") if private.search(p.read_text())]
    assert users == ["iceberg_commit.py"]


def test_read__fresh_process__imports_no_pyiceberg(tmp_path: Path) -> None:
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.unit.resources.lake.frames import on_files\n"
        f"lake = on_files(Path({str(tmp_path)!r})); day = {MON!r}\n"
        "assert lake.sql('SELECT * FROM market.prices').num_rows == 4\n"
        "assert lake.query('SELECT * FROM market.prices').num_rows == 4\n"
        "assert lake.partitions('market.prices') == [day] and lake.version('market.prices', day).rows == 4\n"
        "heavy = {'pyiceberg', 'sqlalchemy', 'pandas', 'dagster'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path.cwd(), check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_open__nothing_is_there__touches_nothing(tmp_path: Path) -> None:
    on_files(tmp_path / "not" / "there")
    LakeLocation.of("postgresql://u:p@nowhere.invalid/db", "s3://bucket/lake", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_file_index__many_snapshots__keeps_the_newest(tmp_path: Path) -> None:
    built = []

    def build(_table: Table, _location: str, snapshot: int) -> FileList:
        built.append(snapshot)
        return FileList(snapshot, (FileEntry("file:///a", 1, 2, "2026-11", MON, MON, (MON,)),))

    index = FileIndex(tmp_path, build)
    lists = [index.get(DAILY, "there", n) for n in range(200)]
    assert len(list((tmp_path / "market.prices").iterdir())) <= 48
    assert FileIndex(tmp_path, build).get(DAILY, "there", 199) == lists[199]
    assert built == list(range(200)), "the second index read the newest from disk"


def test_versions__caches_do_not_decode__are_computed_anew(tmp_path: Path) -> None:
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    for cache in (tmp_path / "cache").rglob("*.json"):
        cache.write_text("{")
    lake = on_files(tmp_path)
    assert lake.version("market.prices", MON) == version_of(DAILY, prices(MON))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("postgresql://u@h/d", "postgresql+psycopg2://u@h/d?connect_timeout=10"),
        ("postgres://u@h/d?connect_timeout=3", "postgresql+psycopg2://u@h/d?connect_timeout=3"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_location__catalog_address__is_normalised(given: str, kept: str) -> None:
    assert LakeLocation.of(given, "/w", Path("/h")).catalog_url == kept


def test_location__address_that_an_engine_would_misread__is_refused() -> None:
    catalogs = ["mysql://h/d", "sqlite:///relative.db", "/path"]
    warehouses = ["relative", "gs://b/x", "file://relative", "/a#b", "/a/[x]", "/a?b", "/a%20b"]
    for catalog, warehouse in [(c, "/w") for c in catalogs] + [("sqlite:////c.db", w) for w in warehouses]:
        with pytest.raises(InvalidInput):
            LakeLocation.of(catalog, warehouse, Path("/h"))


def test_location__shown__hides_the_password() -> None:
    assert "hunter2" not in repr(LakeLocation.of("postgresql://u:hunter2@h/d", "/w", Path("/h")))


def test_connect__after_an_error__is_on_another_database(tmp_path: Path) -> None:
    engine = Engine(Store(), f"file://{tmp_path}", "100MB", 1)
    with engine.connect() as connection:
        connection.execute("CREATE TABLE kept (a INTEGER)").fetchall()
    with engine.connect() as connection:  # the same database
        assert connection.execute("SELECT count(*) FROM kept").fetchall() == [(0,)]
    for error in (duckdb.BinderException, duckdb.CatalogException):  # then another database
        with pytest.raises(error), engine.connect() as connection:
            connection.execute("SELECT nonsense FROM kept").fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('{folder}/beside/a.txt')",
        "SELECT * FROM read_blob('{folder}/lake/../beside/a.txt')",
        "COPY (SELECT 1) TO '{folder}/beside/b.csv'",
        "ATTACH '{folder}/beside/b.db' AS b",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET TimeZone = 'Asia/Shanghai'",
    ],
)
def test_connect_locked__statement_beyond_the_warehouse__is_refused(tmp_path: Path, statement: str) -> None:
    for name in ("beside", "lake"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
    engine = Engine(Store(), f"file://{tmp_path}/lake", "100MB", 1)
    inside = f"SELECT size FROM read_blob('{tmp_path}/lake/a.txt')"
    with engine.connect(locked=True) as connection:
        assert connection.execute(inside).fetchall() == [(1,)]
    with pytest.raises(duckdb.Error), engine.connect(locked=True) as connection:
        connection.execute(statement.format(folder=tmp_path)).fetchall()
    with engine.connect(locked=True) as connection:
        assert connection.execute(inside).fetchall() == [(1,)]
        assert connection.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
