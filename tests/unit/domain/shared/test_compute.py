"""DuckDB over Arrow values, cut off from the outside."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from domain.shared.compute import connection, query

NUMBERS = pa.table({"n": [3, 1, 2]})


def test_query__tables_given__returns_a_table() -> None:
    answer = query("SELECT n * 2 AS m FROM numbers ORDER BY n", {"numbers": NUMBERS})
    assert isinstance(answer, pa.Table)
    assert answer["m"].to_pylist() == [2, 4, 6]


def test_query__parameters__are_bound() -> None:
    answer = query("SELECT ? AS word, CAST(? AS DATE) AS day", {}, ["'; DROP", date(2026, 11, 17)])
    assert answer.to_pylist() == [{"word": "'; DROP", "day": date(2026, 11, 17)}]


def test_query__table_of_an_earlier_query__is_unknown() -> None:
    query("SELECT * FROM numbers", {"numbers": NUMBERS})
    with pytest.raises(duckdb.CatalogException):
        query("SELECT * FROM numbers", {})


@pytest.mark.parametrize("sql", ["SELECT * FROM read_csv('{file}')", "COPY (SELECT 1) TO '{file}'"])
def test_query__file_named__is_refused(sql: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n")
    with pytest.raises(duckdb.PermissionException):
        query(sql.format(file=file), {})
    assert file.read_text() == "a\n1\n"


def test_connection__error_inside__is_closed() -> None:
    with pytest.raises(duckdb.ParserException), connection(numbers=NUMBERS) as con:
        con.sql("SELEC")
    with pytest.raises(duckdb.ConnectionException):
        con.sql("SELECT 1")
