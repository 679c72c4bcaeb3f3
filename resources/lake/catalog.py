"""Iceberg's catalog through pyiceberg, for writers: opening it, creating tables and adding columns."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from domain.shared.error import TransientResourceError
from domain.shared.table import Table
from resources.lake.error import LakeUnwritable
from resources.lake.layout import iceberg_type
from resources.lake.location import CATALOG_NAME, LakeLocation
from resources.lake.locks import Locks

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table as IcebergTable

_INIT_LOCK = "lake-catalog"

_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "10",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    "write.parquet.compression-codec": "zstd",
    # A compacted month is a few row groups: one day of it is read without the others.
    "write.parquet.row-group-limit": "32768",
}


def row_group_size(table: Table) -> int:
    """Rows of a row group, in files of pyiceberg and of DuckDB."""
    return int({**_PROPERTIES, **table.properties}["write.parquet.row-group-limit"])


@contextmanager
def catalog_errors(name: str) -> Iterator[None]:
    """Turn errors of the catalog's database while writing into typed ones."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except (DBAPIError, sqlite3.DatabaseError) as error:
        text = str(error.orig if isinstance(error, DBAPIError) else error).strip()
        if "readonly" in text or "unable to open" in text:
            raise LakeUnwritable(
                f"{name}: the lake's catalog cannot be written: {text}",
                remedy="make the catalog's folder writable for this user",
            ) from error
        raise TransientResourceError(
            f"{name}: the lake's catalog failed: {text}", reason_code="lake_catalog"
        ) from error


class Catalog:
    """pyiceberg's catalog, opened at the first write and kept."""

    def __init__(self, where: LakeLocation, locks: Locks) -> None:
        self._where = where
        self._locks = locks
        self._guard = threading.Lock()
        self._opened: SqlCatalog | None = None

    def open(self) -> SqlCatalog:
        with self._guard:
            if self._opened is None:
                # Several processes creating the catalog's tables at once fail, so one goes first.
                with self._locks.lease(_INIT_LOCK):
                    self._opened = self._open()
            return self._opened

    def _open(self) -> SqlCatalog:
        from pyiceberg.catalog.sql import SqlCatalog

        if self._where.kind == "sqlite":
            path = self._where.sqlite_path
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=60)
            try:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
            finally:
                connection.close()
        return SqlCatalog(CATALOG_NAME, **self._where.properties)

    def load(self, name: str) -> IcebergTable:
        return self.open().load_table(name)

    def location(self, table: Table) -> str:
        """The folder in which a table is created."""
        return f"{self._where.warehouse}/{table.namespace}/{table.table}"

    def create(self, table: Table) -> IcebergTable:
        """Create the table; the caller holds its lock."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError

        catalog = self.open()
        # Two tables of one new namespace may be created at once.
        with self._locks.lease(_INIT_LOCK), suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(table.namespace)
        schema = _schema(table)
        return catalog.create_table(
            table.name,
            schema=schema,
            location=self.location(table),
            partition_spec=_partition_spec(table, schema),
            properties={**_PROPERTIES, "comment": table.description, **table.properties},
        )

    def add_columns(self, stored: IcebergTable, table: Table, names: Sequence[str]) -> IcebergTable:
        schema = _schema(table)
        with stored.update_schema() as update:
            for name in names:
                column = schema.find_field(name)
                update.add_column(name, column.field_type, doc=column.doc, required=False)
        return self.load(table.name)


def _schema(table: Table) -> Any:
    from pyiceberg.schema import Schema

    fields = [
        {
            "id": number,
            "name": column.name,
            "type": iceberg_type(table.name, column.name, column.type),
            "required": not column.nullable,
            "doc": f"{column.description} [{column.unit}]" if column.unit else column.description,
        }
        for number, column in enumerate(table.columns, start=1)
    ]
    return Schema.model_validate({"type": "struct", "fields": fields})


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
