"""Opening Iceberg's catalog through pyiceberg, creating tables and adding columns. For writers only."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from domain.shared.error import TransientResourceError
from domain.shared.table import Table
from resources.lake.error import LakeUnwritable
from resources.lake.locks import FileLocks, Locks
from resources.lake.settings import CATALOG_NAME, Place
from resources.lake.types import iceberg_type

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table as IcebergTable

INIT_LOCK = "lake-catalog"

TABLE_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "10",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    "write.parquet.compression-codec": "zstd",
    # A compacted month is a handful of row groups: one day of it is read without touching the others.
    "write.parquet.row-group-limit": "32768",
}


def row_group_size(table: Table) -> int:
    """Rows of a row group, whoever writes the file."""
    return int({**TABLE_PROPERTIES, **table.properties}["write.parquet.row-group-limit"])


_MAKERS = {
    "boolean": "BooleanType",
    "int": "IntegerType",
    "long": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "date": "DateType",
    "time": "TimeType",
    "timestamp": "TimestampType",
    "timestamptz": "TimestamptzType",
    "string": "StringType",
    "binary": "BinaryType",
}


@contextmanager
def catalog_errors(name: str) -> Iterator[None]:
    """What the catalog's database says while writing, in our own words."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except (DBAPIError, sqlite3.DatabaseError) as error:
        said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
        if "readonly" in said or "unable to open" in said:
            raise LakeUnwritable(
                f"{name}: the lake's catalog cannot be written: {said}",
                remedy="make the catalog's folder writable for this user",
            ) from error
        raise TransientResourceError(
            f"{name}: the lake's catalog failed: {said}", reason_code="lake_catalog"
        ) from error


class Catalog:
    """pyiceberg's catalog, opened at the first write and kept."""

    def __init__(self, place: Place, locks: Locks) -> None:
        self._place = place
        self._locks = locks
        self._guard = threading.Lock()
        self._opened: SqlCatalog | None = None

    def open(self) -> SqlCatalog:
        with self._guard:
            if self._opened is None:
                # Several processes creating the catalog's tables at once fail, so one goes first.
                with self._locks.lease(INIT_LOCK):
                    self._opened = self._open()
            return self._opened

    def _open(self) -> SqlCatalog:
        from pyiceberg.catalog.sql import SqlCatalog

        uri = self._place.catalog_url
        if self._place.kind == "sqlite":
            path = self._place.sqlite_path
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=60)
            try:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
            finally:
                connection.close()
            uri = f"{uri}{'&' if '?' in uri else '?'}timeout=60"
        return SqlCatalog(CATALOG_NAME, uri=uri, warehouse=self._place.warehouse, pool_pre_ping="true")

    def load(self, name: str) -> IcebergTable:
        return self.open().load_table(name)

    def location(self, table: Table) -> str:
        """Where a table of ours is created."""
        return f"{self._place.warehouse}/{table.namespace}/{table.table}"

    def create(self, table: Table) -> IcebergTable:
        """Create the table; the caller holds its lock."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError

        catalog = self.open()
        # Two tables of one new namespace may come at once.
        with self._locks.lease(INIT_LOCK), suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(table.namespace)
        schema = iceberg_schema(table)
        return catalog.create_table(
            table.name,
            schema=schema,
            location=self.location(table),
            partition_spec=_partition_spec(table, schema),
            properties={**TABLE_PROPERTIES, "comment": table.description, **table.properties},
        )

    def add_columns(self, stored: IcebergTable, table: Table, names: Sequence[str]) -> IcebergTable:
        wanted = {c.name: c for c in table.columns}
        with stored.update_schema() as update:
            for name in names:
                column = wanted[name]
                kind = _type(iceberg_type(table.name, name, column.type))
                update.add_column(name, kind, doc=_doc(column.description, column.unit), required=False)
        return self.load(table.name)


def iceberg_schema(table: Table) -> Any:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    return Schema(
        *(
            NestedField(
                field_id=number,
                name=c.name,
                field_type=_type(iceberg_type(table.name, c.name, c.type)),
                required=not c.nullable,
                doc=_doc(c.description, c.unit),
            )
            for number, c in enumerate(table.columns, start=1)
        )
    )


def _doc(description: str, unit: str) -> str:
    return f"{description} [{unit}]" if unit else description


def _type(name: str) -> Any:
    from pyiceberg import types

    if name.startswith("decimal"):
        precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
        return types.DecimalType(int(precision), int(scale))
    return getattr(types, _MAKERS[name])()


def _partition_spec(table: Table, schema: Any) -> Any:
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform, MonthTransform

    if not table.partition_columns:
        return UNPARTITIONED_PARTITION_SPEC
    by_month = table.partition_kind == "day"
    transform = MonthTransform() if by_month else IdentityTransform()
    return PartitionSpec(
        *(
            PartitionField(
                schema.find_field(name).field_id, number, transform, f"{name}_month" if by_month else name
            )
            for number, name in enumerate(table.partition_columns, start=1000)
        )
    )


def default_locks(place: Place) -> Locks:
    from resources.lake.locks import PostgresLocks

    return FileLocks(place.locks) if place.kind == "sqlite" else PostgresLocks(place.postgres_dsn)
