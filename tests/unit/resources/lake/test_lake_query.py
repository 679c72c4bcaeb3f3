"""What SQL that people type may do: read the tables, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from domain.shared.error import InfrastructureError, InvalidInput
from resources.lake.client import Lake
from resources.lake.error import DataCorrupt
from tests.unit.resources.lake.frames import data_files, on_files, prices

MON = "2026-11-16"
THREE_THOUSAND = b"\xf0\x2e"
"""As the footer of a file has it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only read: what hurts files has a lake of its own."""
    home = tmp_path_factory.mktemp("lake")
    on_files(home).replace("market.prices", MON, prices(MON))
    return home


@pytest.fixture(scope="module")
def lake(home: Path) -> Lake:
    return on_files(home)


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO market.prices SELECT * FROM market.prices",
        "DELETE FROM market.prices",
        "DROP VIEW market.prices",
        "CREATE TABLE t AS SELECT 1",
        "COPY market.prices TO '{file}'",
        "COPY (SELECT 1) TO '{file}' (USE_TMP_FILE false)",
        "WITH x AS (COPY (SELECT 1 AS a) TO '{file}' (USE_TMP_FILE false)) SELECT * FROM x, market.prices",
        "(WITH x AS (INSERT INTO market.prices SELECT * FROM market.prices) SELECT 1)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "ATTACH '{folder}/new.db' AS n",
        "EXPORT DATABASE '{folder}/out'",
        "SET enable_external_access = true",
        "PRAGMA enable_profiling",
        "CALL pragma_version()",
        "INSTALL httpfs",
        "SELECT 1; SELECT 2",
        "",
    ],
)
def test_sql__statement_that_writes__is_refused(lake: Lake, home: Path, query: str) -> None:
    (file,) = data_files(home)
    before = file.read_bytes()
    with pytest.raises(InvalidInput):
        lake.sql(query.format(file=file, folder=home))
    assert file.read_bytes() == before
    assert not (home / "out").exists()
    assert not (home / "new.db").exists()


@pytest.mark.parametrize(
    "source",
    [
        "'/etc/passwd'",
        "read_text('/etc/passwd')",
        "read_csv('/etc/passwd')",
        "read_blob('{home}/lake/catalog.db')",
        "glob('/etc/*')",
        "sniff_csv('/etc/passwd')",
        "query('SELECT * FROM read_text(''/etc/passwd'')')",
        "duckdb_secrets()",
    ],
)
def test_sql__other_files__are_refused(lake: Lake, home: Path, source: str) -> None:
    with pytest.raises(InvalidInput):
        lake.sql(f"SELECT * FROM {source.format(home=home)}")
    with pytest.raises(InvalidInput):
        lake.sql(f"SELECT * FROM market.prices, {source.format(home=home)}")


def test_sql__variable_of_the_program__is_no_table(lake: Lake) -> None:
    secret = prices(MON)
    with pytest.raises(InvalidInput, match="secret"):
        lake.sql("SELECT * FROM secret")
    assert secret.num_rows


@pytest.mark.parametrize(
    "query",
    [
        "SELEC 1",
        "SELECT * FROM market.nothing",
        "SELECT * FROM market.prices WHERE close > 'x'",
        "SELECT getenv('HOME') FROM market.prices",
        "SELECT prices.nothing FROM market.prices",
    ],
)
def test_sql__mistake__is_invalid(lake: Lake, query: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be run") as caught:
        lake.sql(query)
    assert caught.value.reason_code == "invalid_sql"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT CAST(ts_code AS INTEGER) FROM market.prices",
        "SELECT strptime(ts_code, '%Y') FROM market.prices",
        "SELECT 9223372036854775807 + volume FROM market.prices",
        "SELECT (SELECT ts_code FROM market.prices)",
    ],
)
def test_sql__mistake_in_values__judges_no_file(
    lake: Lake, home: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would be read whole: a lake of years for a typing error."""
    monkeypatch.setattr("resources.lake.engine.faults_of", lambda *_: pytest.fail("files are judged"))
    with pytest.raises(InvalidInput) as caught:
        lake.sql(query.format(home=home))
    assert caught.value.reason_code == "invalid_sql"


@pytest.mark.parametrize("source", ["read_parquet('{path}')", "read_csv('{path}')", "'{path}'"])
def test_sql__path_with_no_file__is_invalid(lake: Lake, home: Path, source: str) -> None:
    path = f"{home}/lake/warehouse/market/2026.parquet"
    with pytest.raises(InvalidInput, match=r"2026\.parquet") as caught:
        lake.sql(f"SELECT * FROM {source.format(path=path)}")
    assert caught.value.reason_code == "invalid_sql"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def miscount(path: Path) -> None:
    """One column claims other rows than its group has; DuckDB's error lacks the file's name."""
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    of_file = content.index(THREE_THOUSAND, footer)
    of_column = content.index(THREE_THOUSAND, of_file + 1)
    path.write_bytes(content[:of_column] + b"\xf2\x2e" + content[of_column + 2 :])


@pytest.mark.parametrize("hurt", [cut, miscount, Path.unlink])
def test_sql__file_is_corrupt__names_its_partition(tmp_path: Path, hurt: Callable[[Path], None]) -> None:
    lake = on_files(tmp_path)
    lake.replace("market.prices", MON, prices(MON, codes=[f"{n:06d}.SZ" for n in range(3000)]))
    hurt(data_files(tmp_path)[0])
    with pytest.raises(DataCorrupt, match=MON):
        lake.sql("SELECT * FROM market.prices")


def test_sql__more_memory_than_allowed__is_out_of_memory(home: Path) -> None:
    small = on_files(home, memory_limit="20MB", threads=1)
    with pytest.raises((InfrastructureError, InvalidInput)) as caught:
        small.sql("SELECT list(i::VARCHAR || repeat('x', 100)) FROM range(3000000) t(i)")
    assert caught.value.reason_code == "out_of_memory"


@pytest.mark.parametrize(
    "query",
    [
        "FROM market.prices",
        "VALUES (1)",
        "-- a remark\nSELECT count(*) FROM market.prices;",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n",
        "SELECT * FROM market.prices UNION ALL SELECT * FROM market.prices",
        "SELECT (SELECT max(close) FROM MARKET.Prices)",
        "PIVOT market.prices ON ts_code IN ('000001.SZ') USING sum(close)",
    ],
)
def test_sql__every_form_of_reading__is_run(lake: Lake, query: str) -> None:
    assert lake.sql(query).num_rows >= 1


def test_sql__after_another__has_nothing_of_it(lake: Lake) -> None:
    own = pa.table({"a": [1]})
    for name in ("mine", "ops.mine"):
        assert lake.sql(f"SELECT a FROM {name}", extra={name: own}).num_rows == 1
        with pytest.raises(InvalidInput, match="mine"):
            lake.sql(f"SELECT a FROM {name}")
        assert lake.sql(f"SELECT a FROM {name}", extra={name: own}).num_rows == 1
    assert (
        lake.sql("SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'ops'").num_rows
        == 0
    )


def test_sql__table_without_its_namespace__is_found(lake: Lake) -> None:
    expected = lake.sql("SELECT count(*) AS n FROM market.prices")
    assert expected["n"].to_pylist() != [0]
    for query in (
        "SELECT count(*) AS n FROM prices",
        "SELECT count(*) AS n FROM Prices JOIN market.prices p USING (trade_date, ts_code)",
    ):
        assert lake.sql(query) == expected
    assert lake.sql("WITH prices AS (SELECT 1 AS n) FROM prices")["n"].to_pylist() == [1]
    assert lake.sql("SELECT 1 AS prices")["prices"].to_pylist() == [1]


def test_stream__result__is_read_in_batches(lake: Lake) -> None:
    total = lake.stream("SELECT range AS n FROM range(300_000)", lambda rows: [b.num_rows for b in rows])
    assert (sum(total), len(total) > 1) == (300_000, True)


@pytest.mark.parametrize("name", ["price", "market.price"])
def test_sql__table_nearly_named__names_the_one_that_is_meant(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lake.sql(f"SELECT * FROM {name}")
    assert caught.value.reason_code == "invalid_sql"
    assert caught.value.remedy.startswith("did you mean prices? tables: ")
