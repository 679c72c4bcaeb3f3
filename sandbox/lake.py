"""Breaking partitions of a lake on purpose: drop them, halve them, falsify them, or let their files rot.

It goes past every check and every ledger, as a person with a SQL engine or a disk error would. It needs no
definition of the table: the key of a partition is read in the type that its column has (a day, a year, …).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.shared.error import InvalidInput
from domain.shared.table import ALL

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class StoredTable:
    """A table as any program finds it in the catalogue of a lake."""

    name: str
    table: Any

    @classmethod
    def load(cls, properties: Mapping[str, str], name: str) -> StoredTable:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import NoSuchTableError

        kind, _, address = properties["uri"].partition(":///")
        if kind == "sqlite" and not Path(address.partition("?")[0]).exists():
            raise InvalidInput("there is no lake in this home", remedy="fill it: perennial market daily")
        try:
            return cls(name, SqlCatalog("perennial", **properties).load_table(name))
        except NoSuchTableError:
            raise InvalidInput(
                f"the lake has no table {name} yet", remedy="fill it: perennial up, or perennial demo"
            ) from None

    def newest(self) -> str:
        """The key of the newest partition."""
        if not self._columns:
            return ALL
        rows = self.table.scan(selected_fields=self._columns).to_arrow()
        if not rows.num_rows:
            raise InvalidInput(f"{self.name} is empty: there is nothing to break")
        last = rows.sort_by([(name, "descending") for name in reversed(self._columns)]).slice(0, 1)
        return "|".join(str(last[name][0]) for name in self._columns)

    def drop(self, key: str) -> str:
        """Delete the rows of a partition."""
        rows = self._rows(key).num_rows
        self.table.delete(self._filter(key))
        return f"{rows:,} rows dropped"

    def halve(self, key: str) -> str:
        """Delete every row of a partition but the first half."""
        rows = self._rows(key)
        kept = rows.slice(0, rows.num_rows // 2)
        self.table.overwrite(kept, self._filter(key))
        return f"{kept.num_rows:,} of {rows.num_rows:,} rows kept"

    def falsify(self, key: str) -> str:
        """Change every floating point value a little, or if there is none the last other column."""
        import pyarrow as pa

        rows = self._rows(key)
        names = [f.name for f in rows.schema if pa.types.is_floating(f.type)]
        for name in names or [f.name for f in rows.schema if f.name not in self._columns][-1:]:
            index = rows.schema.get_field_index(name)
            rows = rows.set_column(index, rows.schema.field(name), _falsified(rows.column(name)))
        self.table.overwrite(rows, self._filter(key))
        return f"{rows.num_rows:,} rows falsified"

    def rot(self, key: str) -> str:
        """Cut the end off every data file of a partition, as a full disk or a power cut does."""
        self._rows(key)
        paths = [task.file.file_path for task in self.table.scan(row_filter=self._filter(key)).plan_files()]
        for path in paths:
            with Path(path.removeprefix("file://")).open("r+b") as file:
                file.truncate(file.seek(0, 2) // 3)
        return f"{len(paths)} data file(s) cut short"

    def _rows(self, key: str) -> pa.Table:
        rows = self.table.scan(row_filter=self._filter(key)).to_arrow()
        if rows.num_rows == 0:
            raise InvalidInput(f"{self.name} has no rows of {key}: there is nothing to break")
        return rows

    @property
    def _columns(self) -> tuple[str, ...]:
        schema = self.table.schema()
        return tuple(schema.find_column_name(field.source_id) for field in self.table.spec().fields)

    def _filter(self, key: str) -> Any:
        from pyiceberg.expressions import AlwaysTrue, And, EqualTo

        parts = key.split("|") if self._columns else ()
        if len(parts) != len(self._columns):
            raise self._no_partition(key)
        equal = [
            EqualTo(name, self._value(name, key, part))
            for name, part in zip(self._columns, parts, strict=True)
        ]
        return reduce(And, equal, AlwaysTrue())

    def _value(self, column: str, key: str, part: str) -> str | int:
        from pyiceberg.types import DateType, IntegerType, LongType

        kind = self.table.schema().find_field(column).field_type
        try:
            if isinstance(kind, DateType):
                return date.fromisoformat(part).isoformat()
            return int(part) if isinstance(kind, IntegerType | LongType) else part
        except ValueError:
            raise self._no_partition(key) from None

    def _no_partition(self, key: str) -> InvalidInput:
        return InvalidInput(f"{key!r} is no partition of {self.name}", remedy=f"for example {self.newest()}")


BREAKS: dict[str, tuple[Callable[[StoredTable, str], str], str]] = {
    "drop-day": (StoredTable.drop, "missing"),
    "drop-half": (
        StoredTable.halve,
        "incomplete (changed, where nobody knows how many rows there should be)",
    ),
    "corrupt-day": (StoredTable.falsify, "changed"),
    "rot-file": (StoredTable.rot, "corrupt"),
}
"""By name, what is done to a partition, and the state that the plan then sees."""


def break_partition(
    properties: Mapping[str, str], table: str, how: str, key: str | None = None
) -> tuple[str, str]:
    """Break a partition (default: the newest) in a way of `BREAKS`; its key and what was done to it."""
    stored = StoredTable.load(properties, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pyiceberg's, about deletes that match no whole file
        key = key or stored.newest()
        return key, BREAKS[how][0](stored, key)


def _falsified(values: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(values.type):
        return pc.add(pc.multiply(values, 1.01), 0.01).cast(values.type)
    if pa.types.is_integer(values.type):
        return pc.add(values, 1)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return pc.binary_join_element_wise(values, "!", "").cast(values.type)
    raise InvalidInput(f"a column of {values.type} cannot be falsified")
