"""The market catalogue as values: endpoints, their tables, their rules. The rows live in `catalogue.yaml`.

Fetching and storing are no business of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import yaml

from domain.shared.error import InvalidInput
from domain.shared.table import Column, Table

NAMESPACE = "market"

Expected = Literal["listed", "listed_less_suspended", "unknown"]

_TYPES: Mapping[str, pa.DataType] = {
    "date": pa.date32(),
    "string": pa.string(),
    "float64": pa.float64(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "bool": pa.bool_(),
}


@dataclass(frozen=True)
class Endpoint:
    """One row of the catalogue."""

    endpoint: str
    title: str
    published: time
    points: int
    table: Table
    expected: Expected = "unknown"
    floor: int = 0
    may_be_empty: bool = False

    @property
    def name(self) -> str:
        """The table name, which is the last part of the asset key."""
        return self.table.table

    @property
    def source(self) -> str:
        """The name of its row in `source_freshness`."""
        return f"tushare.{self.endpoint}"

    @property
    def source_schema(self) -> pa.Schema:
        """The fields to request. The partition column of a year table is not the source's."""
        ours = self.table.partition_columns if self.table.partition_kind == "year" else ()
        return pa.schema([f for f in self.table.schema if f.name not in ours])


@dataclass(frozen=True)
class Catalogue:
    daily: tuple[Endpoint, ...]
    calendar: Endpoint
    stocks: Endpoint

    def by_name(self, name: str) -> Endpoint:
        for endpoint in (*self.daily, self.calendar, self.stocks):
            if endpoint.name == name:
                return endpoint
        known = ", ".join(e.name for e in (*self.daily, self.calendar, self.stocks))
        raise InvalidInput(f"there is no market table {name!r}", remedy=f"one of: {known}")

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return (self.calendar, self.stocks, *self.daily)


@cache
def catalogue() -> Catalogue:
    """The packaged catalogue."""
    return parse(Path(__file__).with_name("catalogue.yaml").read_text(encoding="utf-8"))


def parse(text: str) -> Catalogue:
    """Read a catalogue; an error names the row and the field."""
    document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    reference = {row["endpoint"]: row for row in document["reference"]}
    return Catalogue(
        daily=tuple(_endpoint(row, partition="day") for row in document["daily"]),
        calendar=_endpoint(reference["trade_cal"], partition="year"),
        stocks=_endpoint(reference["stock_basic"], partition="none"),
    )


_REQUIRED = {"endpoint", "table", "title", "description", "published", "points", "key", "columns"}
_OPTIONAL = {"expected", "floor", "may_be_empty"}
_PARTITION_COLUMNS = {"day": ("trade_date",), "year": ("year",), "none": ()}


def _endpoint(row: Mapping[str, Any], *, partition: Literal["day", "year", "none"]) -> Endpoint:
    where = f"market catalogue, row {row.get('table', row.get('endpoint', '?'))}"
    if missing := _REQUIRED - row.keys():
        raise InvalidInput(f"{where}: missing {', '.join(sorted(missing))}")
    if unknown := row.keys() - _REQUIRED - _OPTIONAL:
        raise InvalidInput(f"{where}: unknown {', '.join(sorted(unknown))}")
    expected = row.get("expected", "unknown")
    if expected not in get_args(Expected):
        raise InvalidInput(f"{where}: expected is {expected!r}", remedy=f"one of {get_args(Expected)}")
    if outside := set(row["key"]) - row["columns"].keys():
        raise InvalidInput(f"{where}: key columns {sorted(outside)} are not among its columns")
    table = Table(
        name=f"{NAMESPACE}.{row['table']}",
        description=row["description"],
        columns=tuple(_column(name, spec, where) for name, spec in row["columns"].items()),
        key=tuple(row["key"]),
        partition_kind=partition,
        partition_columns=_PARTITION_COLUMNS[partition],
    )
    return Endpoint(
        endpoint=row["endpoint"],
        title=row["title"],
        published=_hour(row["published"], where),
        points=int(row["points"]),
        expected=expected,
        floor=int(row.get("floor", 0)),
        may_be_empty=bool(row.get("may_be_empty", False)),
        table=table,
    )


def _hour(value: Any, where: str) -> time:
    try:
        return time.fromisoformat(value)
    except (TypeError, ValueError):
        # Unquoted, YAML reads 16:00 as the number 960.
        raise InvalidInput(f"{where}: published is {value!r}", remedy='a quoted hour: "16:00"') from None


def _column(name: str, spec: Any, where: str) -> Column:
    if not (isinstance(spec, list) and len(spec) == 3):
        raise InvalidInput(f"{where}, column {name}: {spec!r}", remedy="[type, unit, description]")
    kind, unit, description = spec
    bare = kind.removesuffix("!")
    if bare not in _TYPES:
        raise InvalidInput(f"{where}, column {name}: type {kind!r}", remedy=f"one of {sorted(_TYPES)}")
    return Column(name=name, type=_TYPES[bare], description=description, unit=unit, nullable=kind == bare)
