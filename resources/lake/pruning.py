"""Which days a statement asks for, told from its text: files of other days need not even be opened.

DuckDB would find out for itself, but from the footer of every file: with a file a month, a look at one day
costs the more the older a table is. What is not understood here is read whole, as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any

Node = dict[str, Any]
Span = tuple[str, str]
"""The first and the last day, as partition keys."""

_EVER: Span = ("0001-01-01", "9999-12-31")
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_FROM = ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO")
_UNTIL = ("COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO")


def nodes_of(tree: Any) -> Iterator[Node]:
    """Every node of a statement, as DuckDB's `json_serialize_sql` writes it."""
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def table_of(node: Node) -> str | None:
    """The table a node refers to, None if it is no such node."""
    if "table_name" not in node or node.get("type") not in ("BASE_TABLE", "SHOW_REF"):
        return None
    return f"{node.get('schema_name', '')}.{node['table_name']}".lower()


def asked_days(tree: Any, table: str, column: str) -> Span | None:
    """The days outside of which no row of a table can be in the answer; None if that is all of them."""
    nodes = list(nodes_of(tree))
    named = sum(table_of(node) == table for node in nodes)
    spans = [
        _days_where(node["where_clause"], {column, f"{node['from_table']['alias'].lower()}.{column}"})
        for node in nodes
        if node.get("type") == "SELECT_NODE" and _is_plain(node, table)
    ]
    if not spans or len(spans) != named:
        return None  # some place reads it in another way
    whole = (min(low for low, _ in spans), max(high for _, high in spans))
    return None if whole == _EVER else whole


def _is_plain(select: Node, table: str) -> bool:
    """Whether it reads the table and nothing beside it, under the columns' own names, and then filters."""
    source = select.get("from_table")
    return (
        isinstance(source, dict)
        and source.get("type") == "BASE_TABLE"
        and table_of(source) == table
        and isinstance(select.get("where_clause"), dict)
        # A sample is drawn before the filter.
        and not any((source.get("sample"), select.get("sample"), source.get("column_name_alias")))
    )


def _days_where(condition: Node, names: set[str]) -> Span:
    """The days for which a condition can hold."""
    if condition.get("type") == "CONJUNCTION_AND":
        spans = [_days_where(child, names) for child in condition["children"]]
        return max(low for low, _ in spans), min(high for _, high in spans)
    subject, values = _comparison(condition)
    if ".".join(subject.get("column_names", ())).lower() not in names:
        return _EVER
    days = [_day(value) for value in values]
    known = [day for day in days if day is not None]
    if not known or len(known) != len(days):
        return _EVER
    kind = condition["type"]
    return _EVER[0] if kind in _UNTIL else min(known), _EVER[1] if kind in _FROM else max(known)


def _comparison(condition: Node) -> tuple[Node, list[Node]]:
    """What is compared, and with what; nothing if it is no comparison that bounds anything."""
    kind = condition.get("type")
    if kind in ("COMPARE_EQUAL", *_FROM, *_UNTIL):
        return condition["left"], [condition["right"]]
    if kind == "COMPARE_BETWEEN":
        return condition["input"], [condition["lower"], condition["upper"]]
    if kind == "COMPARE_IN":
        return condition["children"][0], condition["children"][1:]
    return {}, []


def _day(value: Node) -> str | None:
    """A constant that is one day, written out or cast from text."""
    if value.get("type") == "OPERATOR_CAST" and value["type_expr"].get("type_name", "").upper() == "DATE":
        value = value["child"]
    literal = value.get("literal") if value.get("type") == "VALUE_CONSTANT" else None
    text = literal.get("text") if isinstance(literal, dict) and literal.get("kind") == "STRING" else None
    if not isinstance(text, str) or not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None
