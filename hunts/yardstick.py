"""What must hold of a home after trouble, as a list of complaints: empty is good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlalchemy import Engine, select

from domain.shared.table import Version
from resources.database.engine import reading
from resources.lake.client import Lake
from resources.ledger.schema import work, work_event
from services.market.service import MarketService

REVISIONS = "market.revisions"
TROUBLED = ("deferred", "failed", "pass_failed", "abandoned")


def content(lake: Lake, table: str) -> pa.Table:
    """All rows of a table in the order of its key."""
    key = [(name, "ascending") for name in lake.tables[table].key]
    return lake.scan(table).read_all().sort_by(key).combine_chunks()


@dataclass(frozen=True)
class Yardstick:
    """The market of a home that was filled without trouble."""

    clean: MarketService

    def complaints(self, market: MarketService, *, revised: bool = False) -> list[str]:
        """After healing. `revised`: the source told different stories, so its revisions are kept."""
        return [
            *self._differences(market.lake, revised=revised),
            *doubled(market.lake),
            *_unfinished(market),
            *without_reason(market.ledger.engine),
            *self.half_done(market),
        ]

    def half_done(self, market: MarketService, *, revised: bool = False) -> Iterator[str]:
        """At any moment: each day of a fetched table is absent, or whole, or partial and recorded so.

        `revised` days have all their rows, but other values.
        """
        for endpoint in market.catalogue.daily:
            name = endpoint.table.name
            held = market.lake.versions(name, market.lake.partitions(name))
            whole = self.clean.lake.versions(name, list(held))
            records = market.provenance.records([name]) if held else {}
            for partition, version in held.items():
                if version == whole[partition]:
                    continue
                record = records.get((name, partition))
                status = record.detail.get("status") if record else "not recorded"
                recorded = Version(record.rows, record.digest) if record else None
                share = version.rows / max(whole[partition].rows, 1)
                if revised and recorded == version and share == 1:
                    continue
                if status != "partial" or recorded != version or not 0.85 <= share < 1:
                    yield (
                        f"{name} {partition} holds {version.rows} of {whole[partition].rows} rows, "
                        f"recorded as {status}: no whole day, and not known to be partial"
                    )

    def _differences(self, lake: Lake, *, revised: bool) -> Iterator[str]:
        for table in lake.tables:
            if table == REVISIONS and revised:
                continue
            ours, theirs = content(lake, table), content(self.clean.lake, table)
            if not ours.equals(theirs):
                where = _where(ours, theirs)
                yield f"{table}: {ours.num_rows} rows, {theirs.num_rows} without trouble; {where}"


def _where(ours: pa.Table, theirs: pa.Table) -> str:
    """In which columns, and from which day on, two tables of one schema differ."""
    if ours.num_rows != theirs.num_rows:
        key = next((n for n in ("trade_date", "year") if n in ours.column_names), None)
        if key is None:
            return "other rows"
        counted = [dict(_counts(side, key)) for side in (ours, theirs)]
        both = counted[0].keys() | counted[1]
        wrong = sorted(str(d) for d in both if counted[0].get(d) != counted[1].get(d))
        return f"other numbers of rows on {', '.join(wrong[:3])} ({len(wrong)} in all)"
    return f"differs in {[n for n in ours.column_names if not ours[n].equals(theirs[n])]}"


def _counts(table: pa.Table, key: str) -> Iterator[tuple[object, int]]:
    counted = table.group_by(key).aggregate([([], "count_all")])
    yield from zip(counted[key].to_pylist(), counted["count_all"].to_pylist(), strict=True)


def doubled(lake: Lake) -> Iterator[str]:
    for name, table in lake.tables.items():
        keys = lake.scan(name, columns=table.key).read_all()
        distinct = keys.group_by(list(table.key)).aggregate([]).num_rows
        if distinct != keys.num_rows:
            yield f"{name}: {keys.num_rows - distinct} keys have more than one row"


def _unfinished(market: MarketService) -> Iterator[str]:
    now = market.clock()
    for row in market.ledger.find(status=("running", "queued", "deferred"), limit=None):
        if row.status == "running" or row.not_before <= now:
            yield f"work {row.id} {row.key} is {row.status} after healing ({row.reason_code}: {row.error})"
    if pending := market.provenance.pending_revisions():
        yield f"{len(pending)} revisions were never kept, the first of {pending[0].partition}"


def without_reason(engine: Engine) -> Iterator[str]:
    query = (
        select(work_event.c.id, work_event.c.event, work.c.key)
        .join(work, work.c.id == work_event.c.work_id)
        .where(work_event.c.event.in_(TROUBLED) | work_event.c.status.in_(("deferred", "failed")))
        .where(work_event.c.reason_code.in_(("",)) | work_event.c.error.is_(None))
    )
    with reading(engine) as connection:
        for number, event, key in connection.execute(query):
            yield f"event {number} ({event}) of {key} says no reason"


def explained(market: MarketService) -> dict[str, set[str]]:
    """The reasons the ledger has for each key that ever had trouble."""
    query = (
        select(work.c.key, work_event.c.reason_code)
        .join(work, work.c.id == work_event.c.work_id)
        .where(work_event.c.error.is_not(None))
    )
    found: dict[str, set[str]] = {}
    with reading(market.ledger.engine) as connection:
        for key, reason in connection.execute(query):
            found.setdefault(key, set()).add(reason)
    return found
