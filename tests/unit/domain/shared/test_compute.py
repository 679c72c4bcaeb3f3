"""DuckDB over Arrow values, cut off from the outside."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from domain.shared.compute import connection, query

NUMBERS = pa.table({"n": [3, 1, 2]})


def test_a_query_takes_tables_and_gives_a_table() -> None:
    answer = query("SELECT n * 2 AS m FROM numbers ORDER BY n", {"numbers": NUMBERS})
    assert isinstance(answer, pa.Table)
    assert answer["m"].to_pylist() == [2, 4, 6]


def test_parameters_are_bound_and_not_pasted() -> None:
    answer = query("SELECT ? AS word, CAST(? AS DATE) AS day", {}, ["'; DROP", date(2026, 11, 17)])
    assert answer.to_pylist() == [{"word": "'; DROP", "day": date(2026, 11, 17)}]


def test_one_query_sees_nothing_of_another() -> None:
    query("SELECT * FROM numbers", {"numbers": NUMBERS})
    with pytest.raises(duckdb.CatalogException):
        query("SELECT * FROM numbers", {})


@pytest.mark.parametrize("sql", ["SELECT * FROM read_csv('{file}')", "COPY (SELECT 1) TO '{file}'"])
def test_files_are_out_of_reach(sql: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n")
    with pytest.raises(duckdb.PermissionException):
        query(sql.format(file=file), {})
    assert file.read_text() == "a\n1\n"


def test_the_connection_is_closed_afterwards_even_after_an_error() -> None:
    with pytest.raises(duckdb.ParserException), connection(numbers=NUMBERS) as con:
        con.sql("SELEC")
    with pytest.raises(duckdb.ConnectionException):
        con.sql("SELECT 1")
