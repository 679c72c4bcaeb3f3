"""Reading from elsewhere: `perennial sql` and its files, notebooks, pyiceberg, plain DuckDB."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import perennial
from domain.shared.error import InvalidInput
from orchestration.settings import PROJECT_ROOT
from tests.integration.services.market.market_app import PREPARED, TODAY, MarketApp

COUNT = f"SELECT count(*) AS n FROM normalized_daily WHERE trade_date = '{TODAY}'"


@pytest.fixture
def whole(app: MarketApp) -> int:
    return app.rows("normalized_daily", TODAY)


# The command


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_sql__statement_on_standard_input__is_answered(
    app: MarketApp, whole: int, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{COUNT};\n"))
    assert app.run("sql", *arguments, "--json").json == [{"n": whole}]


def test_sql__statement_in_a_file__is_answered(app: MarketApp, whole: int, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(f"-- how many?\n{COUNT}")
    assert app.run("sql", "-f", str(file), "--json").json == [{"n": whole}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-f", "/nowhere/q.sql"), "/nowhere/q.sql cannot be read"),
        (("SELECT 1", "-f", "q.sql"), "two statements were given"),
        ((), "no statement was given"),
        (("SELECT 1", "--csv", "--parquet", "x"), "two answers were asked for"),
        (("SELECT 1", "--attach", "x.duckdb"), "give it alone"),
        (("SELECT 1", "--parquet", "/nowhere/x.parquet"), "/nowhere/x.parquet cannot be written"),
    ],
)
def test_sql__wrong_usage__says_what_is_right(
    app: MarketApp, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    said = app.run("sql", *arguments)
    assert (said.code, message in said.err) == (2, True), said.err


def test_sql__show_tables__lists_what_there_is(app: MarketApp) -> None:
    rows = {row["name"]: row for row in app.run("sql", "SHOW TABLES", "--json").json}
    assert {"market.normalized_daily", "carbon.factors", "market.qfq_daily", "ops.work"} <= set(rows)
    assert rows["market.normalized_daily"]["partitioned_by"] == "day"
    assert rows["market.normalized_daily"]["description"]


@pytest.mark.parametrize("name", ["market.normalized_daily", "normalized_daily"])
def test_sql__describe__has_types_units_and_the_key(app: MarketApp, name: str) -> None:
    rows = {row["column_name"]: row for row in app.run("sql", f"DESCRIBE {name};", "--json").json}
    assert (rows["ts_code"]["key"], rows["ts_code"]["null"]) == ("PRI", "NO")
    assert rows["ts_code"]["column_type"] == "VARCHAR"
    assert (rows["vol"]["column_type"], rows["vol"]["unit"]) == ("DOUBLE", "lots of 100 shares")


@pytest.mark.parametrize("name", ["qfq_daily", "market.qfq_daily", "work", "ops.work"])
def test_sql__describe_of_a_view_or_the_ledger__is_duckdbs(app: MarketApp, name: str) -> None:
    assert {"column_name", "column_type"} <= set(app.run("sql", f"DESCRIBE {name}", "--json").json[0])


def test_sql__parquet__writes_all_rows(app: MarketApp, whole: int, tmp_path: Path) -> None:
    out = tmp_path / "day.parquet"
    said = app.run("sql", f"FROM market.normalized_daily WHERE trade_date = '{TODAY}'", "--parquet", str(out))
    assert said.code == 0, said.err
    assert f"{whole:,} rows" in said.out
    rows = pq.read_table(out)
    assert (rows.num_rows, rows["trade_date"][0].as_py()) == (whole, date.fromisoformat(TODAY))
    assert list(tmp_path.iterdir()) == [out]


def test_sql__attach__is_read_by_duckdb_alone_and_refreshed(
    app: MarketApp, whole: int, tmp_path: Path
) -> None:
    out = tmp_path / "bi.duckdb"
    said = app.run("sql", "--attach", str(out))
    assert said.code == 0, said.err
    query = f"SELECT count(*) FROM market.normalized_daily WHERE trade_date = '{TODAY}'"
    factors = "SELECT count(*) > 0 FROM market.qfq_daily"

    def asked(query: str) -> object:
        with duckdb.connect(str(out), read_only=True) as connection:
            return connection.sql(query).fetchall()[0][0]

    assert (asked(query), asked(factors)) == (whole, True)
    app.drop("normalized_daily", TODAY)
    assert asked(query) == whole, "the views name the files of the moment"
    assert app.run("sql", "--attach", str(out)).code == 0
    assert asked(query) == 0


# The module for notebooks


def test_lake__sql__gives_frames_and_sees_new_commits(app: MarketApp, whole: int) -> None:
    lake = perennial.lake(app.home)
    assert "market.normalized_daily" in lake.tables()
    frame = lake.sql(f"FROM normalized_daily WHERE trade_date = '{TODAY}'").df()
    assert (len(frame), str(frame["trade_date"].dtype).startswith("datetime64")) == (whole, True)
    assert lake.sql(COUNT).arrow()["n"].to_pylist() == [whole]
    assert (
        lake.sql("SELECT status, count(*) AS n FROM ops.work GROUP BY 1").rows()[0]["status"] == "completed"
    )
    app.drop("normalized_daily", TODAY)
    assert lake.sql(COUNT).rows() == [{"n": 0}]


def test_lake__as_of__reads_the_past(app: MarketApp, whole: int) -> None:
    before = perennial.lake(app.home).sql("SELECT now() AS at").rows()[0]["at"]
    app.drop("normalized_daily", TODAY)
    lake = perennial.lake(app.home)
    assert lake.sql(COUNT, as_of=before).rows() == [{"n": whole}]
    assert lake.sql(COUNT, as_of=before.isoformat()).rows() == [{"n": whole}]
    assert lake.sql(COUNT).rows() == [{"n": 0}]


def test_lake__statement_that_writes__is_refused(app: MarketApp) -> None:
    with pytest.raises(InvalidInput, match="only one reading statement"):
        perennial.lake(app.home).sql("DROP TABLE market.normalized_daily")


def test_lake__no_lake_in_the_home__is_an_error_and_no_empty_answer(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no lake"):
        perennial.lake(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_lake__import_and_query__load_nothing_heavy(app: MarketApp) -> None:
    program = (
        "import sys, perennial\n"
        "light = {'pyarrow', 'duckdb', 'pydantic'} & set(sys.modules)\n"
        f"perennial.lake({str(app.home)!r}).sql('SELECT 1')\n"
        "print(light, {'dagster', 'pandas', 'pyiceberg', 'typer', 'tushare'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=PROJECT_ROOT)
    assert done.stdout.strip() == "set() set()", done.stderr


# Plain pyiceberg


def test_catalog__opened_by_pyiceberg__has_the_same_rows(app: MarketApp, whole: int) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.expressions import EqualTo

    catalog = load_catalog("perennial", **perennial.lake(app.home).catalog_properties())
    table = catalog.load_table("market.normalized_daily")
    assert table.scan(EqualTo("trade_date", TODAY)).to_arrow().num_rows == whole
    assert ("market", "coverage") in perennial.lake(app.home).catalog().list_tables("market")
    assert PREPARED[0] in {
        str(day) for day in table.scan(selected_fields=("trade_date",)).to_arrow()["trade_date"]
    }
