"""SQL over every table of the lake: what people type can read tables and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypedDict, TypeVar

import duckdb
import pyarrow as pa

from domain.shared import compute
from domain.shared.error import InvalidInput
from domain.shared.table import Table
from resources.lake.damage import query_error
from resources.lake.engine import Engine, identifier, quoted
from resources.lake.view import View, Views, check_known

# DuckDB allows INSERT and COPY inside a WITH clause and calls the query a SELECT, so its nodes are checked.
_READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_NODE = re.compile(r'"type":"(\w+_NODE)"')
"""In a statement as `json_serialize_sql` writes it; in its texts the quotes would be escaped."""
_BARE = re.compile(r'"qualified_name":\{"path":\["(\w+)"\]\}')
"""A relation that a statement names without its namespace, in the same text."""
_CATALOGUE = re.compile(r"\b(information_schema|pg_catalog|show)\b|\bduckdb_")
_REMEDY = "ask one SELECT (or DESCRIBE, SUMMARIZE, SHOW TABLES); only assets change the lake"
Answer = TypeVar("Answer")


class How(TypedDict, total=False):
    """What a statement may be given."""

    as_of: datetime | Mapping[str, int] | None
    """A moment, or the snapshots of some tables."""
    params: Sequence[Any] | Mapping[str, Any] | None
    extra: Mapping[str, pa.Table] | None
    partitions: Mapping[str, Sequence[str]] | None
    """Of a table in it only the files that may hold these are opened; the statement has to filter too."""


@dataclass(frozen=True)
class Query:
    engine: Engine
    views: Views
    tables: Mapping[str, Table]
    computed: Mapping[str, str]
    """SELECTs of our own over the tables, by the name readers use."""

    def run(self, query: str, how: How, *, typed: bool, read: Callable[[Any], Answer]) -> Answer:
        """What `read` makes of DuckDB's relation of a statement, `typed` by a person or of our own code."""
        as_of, extra, partitions = how.get("as_of"), how.get("extra") or {}, how.get("partitions") or {}
        for name in (*(as_of if isinstance(as_of, Mapping) else ()), *partitions):
            check_known(self.tables, name)
        known = (*self.tables, *self.computed, *extra)
        bare = _full_names(check_reading(query), known) if typed else {}
        asked = _named(query, known, bare.values())
        computed = {n: self.computed[n] for n in asked if n in self.computed}
        underlying = [n for sql in computed.values() for n in _named(sql, self.tables)]
        names = [n for n in dict.fromkeys([*asked, *underlying]) if n in self.tables]
        views = self.views.of_all([self.tables[n] for n in names], as_of)
        views |= {
            n: views[n].reduced(views[n].holding(wanted)) for n, wanted in partitions.items() if n in views
        }
        with self.engine.connect(locked=typed) as connection:
            connection.begin()
            self._create_relations(connection, views, extra, computed)
            for name, full in bare.items():
                _create_view(connection, name, f"FROM {identifier(full)}")
            with self.engine.explained(*views.values(), typed=True):
                try:
                    found = read(connection.sql(query, params=how.get("params")))
                except duckdb.CatalogException as error:
                    raise _unknown_table(error, known) from error
            connection.rollback()
            return found

    def _create_relations(
        self,
        connection: Any,
        views: Mapping[str, View],
        extra: Mapping[str, pa.Table],
        computed: Mapping[str, str],
    ) -> None:
        """Create the relations that a statement may name."""
        for schema in sorted({n.split(".", 1)[0] for n in (*views, *extra, *computed) if "." in n}):
            connection.execute(f"CREATE SCHEMA {quoted(schema)}").fetchall()
        for name, view in views.items():
            with self.engine.explained(view):  # the first file is opened here already
                _create_view(connection, name, self.engine.relation(connection, view))
        for name, rows in extra.items():
            connection.register(name if "." not in name else f"registered {name}", rows)
            if "." in name:
                _create_view(connection, name, f"FROM {quoted(f'registered {name}')}")
        for name, sql in computed.items():
            _create_view(connection, name, sql)


@lru_cache(maxsize=64)  # statements repeat
def check_reading(query: str) -> frozenset[str]:
    """Refuse what is not one statement that only reads; return the relations named without a namespace."""
    with compute.connection() as connection:
        try:
            statements = connection.extract_statements(query)
        except duckdb.Error as error:
            raise query_error(error) from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise _no_reading("only one reading statement can be run")
        tree = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0]
    if tree.startswith('{"error":true'):
        raise _no_reading("the query cannot be read as one that only reads")
    if not _READING_NODES.issuperset(_NODE.findall(tree)):
        raise _no_reading("a query must not write, not even inside WITH")
    return frozenset(name.lower() for name in _BARE.findall(tree))


def _unknown_table(error: duckdb.Error, known: Iterable[str]) -> InvalidInput:
    """DuckDB would suggest its own tables, people want ours."""
    message, names = str(error).splitlines()[0], sorted(known)
    asked = re.search(r"with name (\S+) does not exist", message)
    near = get_close_matches(asked[1], [n.rpartition(".")[2] for n in names], n=1) if asked else []
    return InvalidInput(
        f"the query cannot be run: {message}",
        reason_code="invalid_sql",
        remedy=f"{f'did you mean {near[0]}? ' if near else ''}tables: {', '.join(names)}",
    )


def _no_reading(what: str) -> InvalidInput:
    return InvalidInput(what, reason_code="read_only", remedy=_REMEDY)


def _full_names(bare: Collection[str], known: Collection[str]) -> dict[str, str]:
    """The relations that are meant, by the names that lack their namespace."""
    found = {name: [k for k in known if k.partition(".")[2] == name] for name in bare if name not in known}
    return {name: full[0] for name, full in found.items() if len(full) == 1}


def _named(query: str, known: Iterable[str], bare: Iterable[str] = ()) -> list[str]:
    """The relations whose words a statement has, or all if it has none or asks about the catalogue."""
    text = query.lower()
    words = set(re.findall(r"\w+", text))
    named = [*(name for name in known if words.issuperset(name.split("."))), *bare]
    return list(known) if not named or _CATALOGUE.search(text) else named


def _create_view(connection: Any, name: str, sql: str) -> None:
    connection.execute(f"CREATE VIEW {identifier(name)} AS {sql}").fetchall()
