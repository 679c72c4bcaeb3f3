"""SQL over every table of the lake: what people type can read tables and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from domain.shared import compute
from domain.shared.error import InvalidInput
from domain.shared.table import Table
from resources.lake.damage import READ_ERRORS, query_error
from resources.lake.engine import Engine, quoted
from resources.lake.view import View, Views, check_known

Node = dict[str, Any]

# DuckDB allows INSERT and COPY inside a WITH clause and calls the query a SELECT, so its nodes are checked.
_READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_NEVER_OF_A_FILE = (
    duckdb.ParserException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.PermissionException,
    duckdb.OutOfMemoryException,
)
_OF_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
"""Raised for values that the statement cannot use; some for what a file holds, and then they name it."""
_WORDS_OF_A_FILE = ("parquet", "incorrect stats size", "invalid unicode")
"""Parts of such messages: the name of each data file has the first, and column names may be corrupt."""
_NO_SUCH_PATH = "No files found that match the pattern"
_TREES_KEPT = 64
_REMEDY = "ask one SELECT (or DESCRIBE, SUMMARIZE, SHOW ALL TABLES); only assets change the lake"


@dataclass(frozen=True)
class Query:
    engine: Engine
    views: Views
    tables: Mapping[str, Table]
    computed: Mapping[str, str]
    """SELECTs of our own over the tables, by the name readers use."""

    def untrusted(self) -> AbstractContextManager[Any]:
        """A connection for a statement that was typed by anybody."""
        return self.engine.connect_locked()

    def trusted(self) -> AbstractContextManager[Any]:
        """A connection for a statement of our own code, which needs no locked database."""
        return self.engine.connect()

    def run(
        self,
        connection: Any,
        query: str,
        as_of: datetime | Mapping[str, int] | None,
        params: Sequence[Any] | Mapping[str, Any] | None,
        extra: Mapping[str, pa.Table],
        partitions: Mapping[str, Sequence[str]],
    ) -> pa.Table:
        for name in (*(as_of if isinstance(as_of, Mapping) else ()), *partitions):
            check_known(self.tables, name)
        asked = referenced(parsed(query), (*self.tables, *self.computed, *extra))
        computed = {n: self.computed[n] for n in asked if n in self.computed}
        beneath = [n for sql in computed.values() for n in referenced(parsed(sql), tuple(self.tables))]
        names = [n for n in dict.fromkeys([*asked, *beneath]) if n in self.tables]
        views = self.views.of_all([self.tables[n] for n in names], as_of)
        views |= {
            n: views[n].reduced(views[n].holding(wanted)) for n, wanted in partitions.items() if n in views
        }
        registered = bool(extra) or any(v.has_deletes for v in views.values())
        with self.views.kept(views.values()), _cleared(connection, [*views, *extra, *computed], registered):
            self._furnish(connection, views, extra)
            for name, sql in computed.items():
                connection.execute(f"CREATE VIEW {_identifier(name)} AS {sql}").fetchall()
            try:
                return connection.sql(query, params=params).to_arrow_table()
            except READ_ERRORS as error:
                raise self._explained(views, extra, error) from error

    def _explained(
        self, views: Mapping[str, View], extra: Mapping[str, pa.Table], error: Exception
    ) -> Exception:
        """Whether the statement is wrong, or a file that it reads."""
        if not _is_of_the_statement(error):
            for view in views.values():
                self.engine.raise_faults(view.table, view.files, error)
        if isinstance(error, duckdb.CatalogException):
            # DuckDB would suggest its own tables, people want ours.
            return _refused(error, f"tables: {', '.join(sorted({*self.tables, *self.computed, *extra}))}")
        if isinstance(error, duckdb.IOException) and _NO_SUCH_PATH in str(error):
            return _refused(error)
        return query_error(error) if isinstance(error, (duckdb.Error, OSError)) else error

    def _furnish(self, connection: Any, views: Mapping[str, View], extra: Mapping[str, pa.Table]) -> None:
        for name, view in views.items():
            with self.engine.explained(view.table, view.files):  # the first file is opened here already
                rows = self.engine.relation(connection, view)
                connection.execute(f"CREATE VIEW {_identifier(name)} AS {rows}").fetchall()
        for name, rows in extra.items():
            if "." not in name:
                connection.register(name, rows)
                continue
            connection.register(_registered(name), rows)
            connection.execute(
                f"CREATE VIEW {_identifier(name)} AS FROM {quoted(_registered(name))}"
            ).fetchall()


def _is_of_the_statement(error: Exception) -> bool:
    """Whether it is raised whatever the files hold: to judge the files means to read them whole."""
    if isinstance(error, _OF_VALUES):
        return not any(word in str(error).lower() for word in _WORDS_OF_A_FILE)
    return isinstance(error, _NEVER_OF_A_FILE)


def _refused(error: Exception, remedy: str = "") -> InvalidInput:
    first = str(error).strip().splitlines()[0]
    return InvalidInput(f"the query cannot be run: {first}", reason_code="invalid_sql", remedy=remedy)


@lru_cache(maxsize=_TREES_KEPT)
def parsed(query: str) -> Any:
    """A reading statement as a tree, not to be changed: statements repeat. Refuses what writes."""
    with compute.connection() as connection:
        try:
            statements = connection.extract_statements(query)
        except duckdb.Error as error:
            raise query_error(error) from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidInput(
                "only one reading statement can be run", reason_code="read_only", remedy=_REMEDY
            )
        text = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0]
    tree = orjson.loads(text)
    if tree["error"]:
        raise InvalidInput(
            f"the query cannot be read: {tree.get('error_message')}", reason_code="read_only", remedy=_REMEDY
        )
    kinds = {str(node.get("type", "")) for node in _nodes_of(tree)}
    if any(kind.endswith("_NODE") for kind in kinds - _READING_NODES):
        raise InvalidInput(
            "a query must not write, not even inside WITH", reason_code="read_only", remedy=_REMEDY
        )
    return tree


def referenced(tree: Any, known: Sequence[str]) -> list[str]:
    """The lake tables a statement names, or all if it asks about the catalogue itself."""
    named = {name for node in _nodes_of(tree) if (name := _table_of(node)) is not None}
    of_ours = [n for n in known if n in named]
    if of_ours and not any(n.startswith(("information_schema.", "pg_catalog.")) for n in named):
        return of_ours
    return list(dict.fromkeys(known))


def _nodes_of(tree: Any) -> Iterator[Node]:
    """Every node of a statement, as DuckDB's `json_serialize_sql` writes it."""
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def _table_of(node: Node) -> str | None:
    """The table a node refers to, None if it is no such node."""
    if "table_name" not in node or node.get("type") not in ("BASE_TABLE", "SHOW_REF"):
        return None
    return f"{node.get('schema_name', '')}.{node['table_name']}".lower()


@contextmanager
def _cleared(connection: Any, names: Sequence[str], registered: bool) -> Iterator[None]:
    """Create the schemas of some names; drop them afterwards, and all registered relations."""
    schemas = dict.fromkeys(name.split(".", 1)[0] for name in names if "." in name)
    for schema in schemas:
        connection.execute(f"CREATE SCHEMA {quoted(schema)}").fetchall()
    yield
    for schema in schemas:
        connection.execute(f"DROP SCHEMA {quoted(schema)} CASCADE").fetchall()
    if registered:
        views = "SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal"
        for (name,) in connection.execute(views).fetchall():
            connection.unregister(name)


def _registered(name: str) -> str:
    return f"registered {name}"


def _identifier(name: str) -> str:
    return ".".join(quoted(part) for part in name.split(".", 1))
