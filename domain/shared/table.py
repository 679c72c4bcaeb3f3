"""What a lake table is, as a value: the one place where layout, types and keys are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Literal

import pyarrow as pa

PartitionKind = Literal["day", "year", "category", "category_year", "none"]
"""How a table is cut into replaceable partitions.

day            a DATE column; a partition key is `2026-11-17`; files are laid out by month
year           an INT32 column; a partition key is `2026`
category       a STRING column; a partition key is one of its values
category_year  a STRING and an INT32 column; a partition key is `plane|2026`, as Dagster writes two dimensions
none           one partition, the whole table, whose key is `ALL`
"""

ALL = "ALL"


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType
    description: str
    unit: str = ""
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A lake table. `name` is `<namespace>.<table>`, as in its asset key."""

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partition_kind: PartitionKind = "none"
    partition_columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    sums: str = ""
    """SQL over the relation `results`: control sums of a partition's rows. Where a table has them, their
    digest is the version, instead of a hash of each row."""
    history: timedelta = timedelta(days=7)
    """How long a past state can be read, from when another replaced it."""

    @property
    def namespace(self) -> str:
        return self.name.split(".", 1)[0]

    @property
    def table(self) -> str:
        return self.name.split(".", 1)[1]

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema every frame must have, descriptions and units as field metadata."""
        return pa.schema(
            [
                pa.field(
                    c.name,
                    c.type,
                    nullable=c.nullable,
                    metadata={"description": c.description, **({"unit": c.unit} if c.unit else {})},
                )
                for c in self.columns
            ]
        )

    @property
    def sort_order(self) -> tuple[str, ...]:
        return self.sort or self.key


@dataclass(frozen=True, order=True)
class Version:
    """What a partition contains: row count and an order-independent hash of its rows.

    Content, not a snapshot: compaction keeps it, a hand edit changes it. `corrupt` marks a
    partition whose files do not decode; `unavailable` says why its bytes cannot be read now, so that its
    content is unknown. Neither equals a healthy version.
    """

    rows: int
    digest: str
    corrupt: bool = False
    unavailable: str = ""

    @property
    def readable(self) -> bool:
        return not (self.corrupt or self.unavailable)

    def __str__(self) -> str:
        if self.unavailable:
            return "unavailable"
        return "corrupt" if self.corrupt else f"{self.rows}:{self.digest}"


ABSENT = Version(rows=0, digest="")
"""The version of a partition that does not exist."""
