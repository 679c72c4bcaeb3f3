"""A table's current metadata file, read as the plain JSON it is.

Metadata files never change once written, so they are parsed once per process. Their format is Iceberg's
public specification; only manifests (Avro) need pyiceberg, see iceberg_read.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from domain.shared.error import InvalidInput
from domain.shared.table import Table
from resources.lake.error import SnapshotGone
from resources.lake.layout import iceberg_type


@dataclass(frozen=True)
class Field:
    id: int
    name: str
    type: Any


@dataclass(frozen=True)
class SnapshotInfo:
    id: int
    parent_id: int | None
    at_ms: int
    sequence: int


@dataclass(frozen=True)
class TableMetadata:
    name: str
    location: str
    fields: tuple[Field, ...]
    current_id: int | None
    snapshots: Mapping[int, SnapshotInfo]
    log: tuple[tuple[int, int], ...]
    """(moment in ms, snapshot id) of every time the current snapshot changed, oldest first."""
    evolved: bool = False
    """Whether older files may lack columns, or have them under other names."""

    @property
    def current(self) -> SnapshotInfo | None:
        return None if self.current_id is None else self.snapshots[self.current_id]

    def snapshot_at(self, moment: datetime) -> int | None:
        """The snapshot that was current at a moment; None if the table was still empty then."""
        if moment.tzinfo is None:
            raise InvalidInput(f"as_of {moment.isoformat()} has no time zone")
        at_ms = int(moment.astimezone(UTC).timestamp() * 1000)
        known = [(when, self.snapshots[i]) for when, i in self.log if i in self.snapshots]
        earlier = [snapshot for when, snapshot in known if when <= at_ms]
        later = [snapshot for when, snapshot in known if when > at_ms]
        # Expiry takes snapshots out of the log and leaves no mark but a jump in the sequence numbers: the
        # last entry before the moment alone may show rows of another time.
        last = earlier[-1].sequence if earlier else 0
        if (later and later[0].sequence > last + 1) or (not known and self.snapshots):
            raise self._gone(f"the table at {moment.isoformat()}")
        return earlier[-1].id if earlier else None

    def snapshot(self, number: int) -> int:
        if number not in self.snapshots:
            raise self._gone(f"snapshot {number}")
        return number

    def _gone(self, what: str) -> SnapshotGone:
        kept = min((s.at_ms for s in self.snapshots.values()), default=0)
        oldest = datetime.fromtimestamp(kept / 1000, UTC).isoformat(timespec="seconds")
        return SnapshotGone(
            f"{self.name}: {what} is no longer kept",
            remedy=f"ask for a moment after {oldest}, the oldest kept",
        )


def parse_metadata(name: str, location: str, content: bytes) -> TableMetadata:
    raw = orjson.loads(content)
    schema_id = raw["current-schema-id"]
    schema = next(s for s in raw["schemas"] if s["schema-id"] == schema_id)
    snapshots = {
        s["snapshot-id"]: SnapshotInfo(
            s["snapshot-id"], s.get("parent-snapshot-id"), s["timestamp-ms"], s.get("sequence-number", 0)
        )
        for s in raw.get("snapshots", ())
    }
    current = raw.get("current-snapshot-id")
    return TableMetadata(
        name=name,
        location=location,
        fields=tuple(Field(f["id"], f["name"], f["type"]) for f in schema["fields"]),
        current_id=current if current in snapshots else None,
        snapshots=snapshots,
        log=tuple((e["timestamp-ms"], e["snapshot-id"]) for e in raw.get("snapshot-log", ())),
        evolved=len(raw["schemas"]) > 1,
    )


def added_columns(table: Table, metadata: TableMetadata) -> list[str]:
    """Columns the definition has and the stored table has not; any other difference is an error."""
    stored = {f.name: f.type for f in metadata.fields}
    defined = {c.name: iceberg_type(table.name, c.name, c.type) for c in table.columns}
    if removed := [name for name in stored if name not in defined]:
        raise InvalidInput(
            f"{table.name}: the stored table has columns {removed} that the definition lacks",
            remedy="keep the columns in the definition; columns are only ever added",
        )
    for name, kind in defined.items():
        if name in stored and str(stored[name]).replace(" ", "") != kind.replace(" ", ""):
            raise InvalidInput(
                f"{table.name}.{name}: stored as {stored[name]}, defined as {kind}",
                remedy="add a new column instead of changing a type",
            )
    added = [c for c in table.columns if c.name not in stored]
    if required := [c.name for c in added if not c.nullable]:
        raise InvalidInput(f"{table.name}: new columns {required} must be nullable, old rows have no value")
    return [c.name for c in added]


def schema_map(table: Table, metadata: TableMetadata) -> str:
    """DuckDB's read_parquet schema: columns found by Iceberg field id, NULL where a file lacks them."""
    defined = set(table.schema.names)
    entries = (
        f"{f.id}: {{name: '{f.name}', type: '{f.type}', default_value: NULL}}"
        for f in metadata.fields
        if f.name in defined
    )
    return f"MAP {{{', '.join(entries)}}}"
