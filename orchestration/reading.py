"""Reading all that the platform holds in SQL: the lake's tables, views over them, the ledger's tables.

`perennial sql` and the module `perennial` read through it. It writes nothing and imports no Dagster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from domain.shared.error import InvalidInput
from orchestration import registry
from orchestration.domain import constant
from orchestration.services import open_lake, open_ledger
from resources.lake.location import LakeLocation

if TYPE_CHECKING:
    import pyarrow as pa

    from domain.shared.table import Table
    from orchestration.settings import Settings
    from resources.lake.client import Lake

LEDGER_TABLES = {
    f"ops.{name}": constant(f"resources.ledger.schema:{name}")
    for name in ("work", "work_event", "partition_record", "pipeline_member")
}
"""The ledger's tables that SQL sees, by name."""

_SHOW = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(r"\s*(?:describe|desc|show)\s+([\w.]+)\s*;?\s*", re.IGNORECASE)
Answer = TypeVar("Answer")


class Reader:
    """One home, to be read. Nothing is opened before it is asked for."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def location(self) -> LakeLocation:
        return LakeLocation.of(self.settings.catalog_url, self.settings.warehouse, self.settings.home)

    def require_lake(self) -> None:
        """Raise if there is no lake here: an empty answer would hide a wrong address."""
        where = self.location
        if where.kind == "sqlite" and not where.sqlite_path.exists():
            raise InvalidInput(
                f"there is no lake in {where.home}",
                remedy="name its home: PERENNIAL_HOME, or in Python perennial.lake(home)",
            )

    def _require_home(self) -> None:
        if not self.settings.home.exists():
            self.require_lake()

    @cached_property
    def lake(self) -> Lake:
        return open_lake(self.settings)

    def sql(self, query: str, as_of: datetime | None = None) -> pa.Table:
        """The result of one reading statement; of the lake as it was at a moment."""
        if (known := self._known(query)) is not None:
            return known
        self._require_home()
        return self.lake.sql(query, as_of=as_of, extra=self._ledger_rows(query))

    def stream(
        self, query: str, write: Callable[[pa.RecordBatchReader], Answer], as_of: datetime | None = None
    ) -> Answer:
        """What `write` makes of the result, of which it reads one batch after the other."""
        if (known := self._known(query)) is not None:
            return write(known.to_reader())
        self._require_home()
        return self.lake.stream(query, write, as_of=as_of, extra=self._ledger_rows(query))

    @cached_property
    def _ledger_tables(self) -> Mapping[str, Callable[[], Any]]:
        of_domains = [domain.ledger_tables for domain in registry.enabled(self.settings)]
        return {name: table for tables in (LEDGER_TABLES, *of_domains) for name, table in tables.items()}

    def _ledger_rows(self, query: str) -> dict[str, pa.Table]:
        """The ledger's tables that a query names; opening the ledger costs as much as a query."""
        named = [name for name in self._ledger_tables if _names(query, name)]
        if not named:
            return {}
        from resources.database.arrow import read_arrow

        engine = open_ledger(self.settings).engine
        return {name: read_arrow(engine, self._ledger_tables[name]()) for name in named}

    def _known(self, query: str) -> pa.Table | None:
        """The answer to what is known without reading: which tables there are, and what a table is."""
        if _SHOW.fullmatch(query):
            return self.overview()
        if found := _DESCRIBE.fullmatch(query):
            asked = found[1].lower()
            tables = registry.tables(self.settings)
            meant = [table for table in tables if asked in (table.name, table.table)]
            return _description(meant[0]) if len(meant) == 1 else None
        return None

    def overview(self) -> pa.Table:
        """Every relation that SQL sees."""
        import pyarrow as pa

        rows: list[tuple[str, str, str]] = [
            (t.name, t.partition_kind, t.description.partition(". ")[0].rstrip("."))
            for t in registry.tables(self.settings)
        ]
        rows += [(name, "view", "Computed when it is read") for name in registry.views(self.settings)]
        rows += [(name, "ledger", "A table of the ledger, as it is now") for name in self._ledger_tables]
        names = ("name", "partitioned_by", "description")
        return pa.table(dict(zip(names, map(list, zip(*sorted(rows), strict=True)), strict=True)))


def _names(query: str, table: str) -> bool:
    namespace, _, name = table.partition(".")
    qualified, bare = (
        rf"\b{namespace}\s*\.\s*{name}\b",
        rf"(from|join|describe|desc|summarize|show|,)\s+{name}\b",
    )
    return re.search(f"{qualified}|{bare}", query, re.IGNORECASE) is not None


def _description(table: Table) -> pa.Table:
    """The columns of a table, as DuckDB's DESCRIBE gives them, and what DuckDB does not know of them."""
    import pyarrow as pa

    from domain.shared import compute

    with compute.connection() as connection:
        types = connection.from_arrow(table.schema.empty_table()).types
    return pa.Table.from_pylist(
        [
            {
                "column_name": column.name,
                "column_type": str(type_),
                "null": "YES" if column.nullable else "NO",
                "key": "PRI" if column.name in table.key else None,
                "unit": column.unit or None,
                "description": column.description,
            }
            for column, type_ in zip(table.columns, types, strict=True)
        ]
    )
