"""What must hold of a home's market after chaos, as a list of complaints: empty is good."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from domain.shared.table import Version
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from services.market.service import MarketService
from tests.chaos.home import EVENING, EXCHANGE, Home

NEEDS_REASON = ("deferred", "failed", "pass_failed", "abandoned")


def sorted_rows(lake: Lake, table: str) -> pa.Table:
    key = [(name, "ascending") for name in lake.tables[table].key]
    return lake.query(f"SELECT * FROM {table}").sort_by(key).combine_chunks()


@dataclass(frozen=True)
class MarketChecks:
    """Compares a market with `clean`, the market of a home that was filled undisturbed."""

    clean: MarketService

    def complaints(self, market: MarketService) -> list[str]:
        """After healing."""
        tables = [t for t in market.lake.tables if t.startswith("market.")]
        return [
            *differences(market.lake, self.clean.lake, tables),
            *duplicate_keys(market.lake, "market."),
            *_unfinished(market),
            *without_reason(market.ledger),
            *self.half_done(market),
        ]

    def half_done(self, market: MarketService) -> Iterator[str]:
        """At any moment each day of a fetched table is absent, or whole, or partial and recorded as that."""
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
                if status != "partial" or recorded != version or not 0.85 <= share < 1:
                    yield (
                        f"{name} {partition} holds {version.rows} of {whole[partition].rows} rows, "
                        f"recorded as {status}: no whole day, and not known to be partial"
                    )


@dataclass
class Baseline:
    """Days, the home that was filled with them undisturbed, and room for other homes."""

    folder: Path
    days: list[date]
    backfill: tuple[str, ...]
    checks: MarketChecks
    seconds: float
    """What an undisturbed backfill takes here."""
    kilobytes: int
    """What the filled home needs on the disk."""
    _homes: int = 0

    def home(self, **settings: Any) -> AbstractContextManager[Home]:
        """An empty home, gone afterwards."""
        self._homes += 1
        return Home.opened(self.folder / f"home-{self._homes}", **settings)


@contextmanager
def baseline(count: int) -> Iterator[Baseline]:
    """The newest `count` trading days of the evening."""
    today = EVENING.date()
    days = list(EXCHANGE.open_days(today - timedelta(days=2 * count + 30), today))[-count:]
    backfill = ("market", "backfill", "--from", str(days[0]), "--to", str(days[-1]))
    with tempfile.TemporaryDirectory(prefix="chaos-") as name, Home.opened(Path(name) / "clean") as clean:
        began = time.monotonic()
        run_undisturbed(clean, *backfill)
        seconds = time.monotonic() - began
        size = sum(f.stat().st_size for f in clean.folder.rglob("*") if f.is_file())
        yield Baseline(Path(name), days, backfill, MarketChecks(clean.market), seconds, size // 1024)


def run_undisturbed(home: Home, *command: str) -> None:
    """A command that has to work: without chaos nothing is left to do."""
    ended = home.run(*command)
    if ended.code != 0:
        raise RuntimeError(f"{' '.join(command)} fails without any chaos:\n{ended.text}")


def differences(
    ours: Lake, clean: Lake, tables: list[str], without: dict[str, tuple[str, ...]] | None = None
) -> Iterator[str]:
    """Tables whose rows differ, but for the columns in `without`."""
    for table in tables:
        left_out = list((without or {}).get(table, ()))
        left, right = (sorted_rows(lake, table).drop_columns(left_out) for lake in (ours, clean))
        if left.num_rows != right.num_rows:
            yield f"{table}: {left.num_rows} rows, {right.num_rows} without chaos; {_other_days(left, right)}"
        elif not left.equals(right):
            columns = [n for n in left.column_names if not left[n].equals(right[n])]
            yield f"{table}: {left.num_rows} rows as without chaos, but other values in {columns}"


def _other_days(left: pa.Table, right: pa.Table) -> str:
    key = next((name for name in ("trade_date", "year") if name in left.column_names), left.column_names[0])
    counts = [
        dict(zip(counted[key].to_pylist(), counted["count_all"].to_pylist(), strict=True))
        for counted in (side.group_by(key).aggregate([([], "count_all")]) for side in (left, right))
    ]
    other = sorted(str(d) for d in {*counts[0], *counts[1]} if counts[0].get(d) != counts[1].get(d))
    return f"other numbers of rows for {', '.join(other[:3])} ({len(other)} in all)"


def duplicate_keys(lake: Lake, namespace: str) -> Iterator[str]:
    for name, table in lake.tables.items():
        if name.startswith(namespace):
            keys = lake.query(f"SELECT {', '.join(table.key)} FROM {name}")
            distinct = keys.group_by(list(table.key)).aggregate([]).num_rows
            if distinct != keys.num_rows:
                yield f"{name}: {keys.num_rows - distinct} keys have more than one row"


def _unfinished(market: MarketService) -> Iterator[str]:
    now = market.clock()
    for row in market.ledger.find(status=("running", "queued", "deferred"), limit=None):
        if row.status == "running" or row.not_before <= now:
            yield f"work {row.id} {row.key} is {row.status} after healing ({row.reason_code}: {row.error})"
    if pending := market.provenance.pending_revisions():
        yield f"{len(pending)} revisions were never recorded, the first of {pending[0].partition}"


def without_reason(ledger: Ledger) -> Iterator[str]:
    """Every failure in the history of the work names its reason and its error."""
    for row in ledger.find(limit=None):
        for event in ledger.events(row.id):
            bad = event.event in NEEDS_REASON or event.status in ("deferred", "failed")
            if bad and not (event.reason_code and event.error):
                yield f"event {event.id} ({event.event}) of {row.key} has no reason"


def failed_keys(ledger: Ledger) -> set[str]:
    """The keys whose history has an error."""
    return {row.key for row in ledger.find(limit=None) if any(e.error for e in ledger.events(row.id))}
