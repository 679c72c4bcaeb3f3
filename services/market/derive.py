"""Deriving days from what is in the lake: adjusted prices, coverage, revisions.

Every derived partition records the versions it was made from; the plan wants it again when they change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Sequence
from datetime import date
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from domain.market.derived import ADJUSTED_FROM, adjusted_inputs, coverage_inputs
from domain.market.observed import Observed
from domain.market.plan import FILL
from domain.market.reckoning import adjusted_daily, coverage, lost_revision, revisions
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.shared.table import Table
from resources.lake.error import DataCorrupt, DataUnavailable, SnapshotGone
from resources.ledger.provenance import Revision
from services.market.days import days_to_write
from services.market.service import MarketService, dates
from services.partitions import (
    Attempt,
    Batch,
    Built,
    InputMissing,
    NotBuilt,
    Notify,
    PartitionReport,
    Request,
)

log = logging.getLogger("perennial.market")

Compute = Callable[[Observed, Sequence[date]], pa.Table]
Inputs = Callable[[Observed, str], "dict[str, str] | None"]


def derive_adjusted(market: MarketService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    def compute(_: Observed, wanted: Sequence[date]) -> pa.Table:
        daily, factors = (
            market.lake.query(
                f"SELECT * FROM market.{name} WHERE trade_date IN ({dates(wanted)})",
                partitions={f"market.{name}": [str(d) for d in wanted]},
            )
            for name in ADJUSTED_FROM
        )
        return adjusted_daily(daily, factors)

    _derive(market, ADJUSTED_DAILY, partitions, this, report, adjusted_inputs, compute)


def derive_coverage(market: MarketService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    def compute(seen: Observed, wanted: Sequence[date]) -> pa.Table:
        counted = [e for e in market.catalogue.daily if e.expected != "unknown"]
        present = [
            market.lake.query(
                f"SELECT '{e.name}' AS table_name, trade_date, ts_code FROM {e.table.name} "
                f"WHERE trade_date IN ({dates(readable)})",
                partitions={e.table.name: [str(d) for d in readable]},
            )
            for e in counted
            if (readable := [d for d in wanted if seen.state(e.name, str(d)).version.readable])
        ]
        return coverage(
            market.catalogue,
            wanted,
            seen.states,
            seen.expected,
            market.stocks(),
            market.suspensions([d for d in wanted if seen.state("suspensions", str(d)).version.readable]),
            pa.concat_tables(present) if present else _PRESENT.empty_table(),
        )

    def inputs(seen: Observed, partition: str) -> dict[str, str] | None:
        return coverage_inputs(market.catalogue, seen, partition)

    _derive(market, COVERAGE, partitions, this, report, inputs, compute)


# Not the empty table itself: making one at import would load pandas.
_PRESENT = pa.schema([("table_name", pa.string()), ("trade_date", pa.date32()), ("ts_code", pa.string())])


def _derive(
    market: MarketService,
    table: Table,
    partitions: Sequence[str],
    this: Attempt,
    report: Notify,
    inputs_of: Inputs,
    compute: Compute,
) -> None:
    """Write the days whose inputs are complete, month by month; skip the others."""
    wanted = [str(day) for day in days_to_write(market, table, partitions, this, report)]

    def batches(requests: Sequence[Request]) -> Generator[Batch, None, None]:
        days = [date.fromisoformat(request.partition) for request in requests]
        for _, group in groupby(days, key=lambda d: (d.year, d.month)):
            began, month = time.monotonic(), list(group)
            seen = market.observe_days(month)
            inputs = {day: inputs_of(seen, str(day)) for day in month}
            ready = [day for day in month if inputs[day] is not None]
            rows = compute(seen, ready) if ready else table.schema.empty_table()
            seconds = (time.monotonic() - began) / len(month)
            yield [
                *(_missing(table, day) for day in month if inputs[day] is None),
                *(_derived(table, day, rows, inputs[day] or {}, seconds) for day in ready),
            ]

    market.materialization(FILL, table, this, report, allow_empty=False).run(wanted, batches)


def _missing(table: Table, day: date) -> NotBuilt:
    """No attempt helps: the plan wants the day again when its inputs are there."""
    error = InputMissing(f"{table.table}: an input of {day} is missing")
    return NotBuilt(str(day), error, skip=error.reason_code)


def _derived(table: Table, day: date, rows: pa.Table, inputs: dict[str, str], seconds: float) -> Built:
    of_day = rows.filter(pc.equal(rows["trade_date"], pa.scalar(day, pa.date32())))
    detail = {"status": "complete"}
    return Built(str(day), {table.name: of_day}, inputs, detail, seconds=seconds)


def derive_revisions(market: MarketService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    """Compare what the source says now with what it said before, while both snapshots are kept."""
    wanted = [str(day) for day in days_to_write(market, REVISIONS, partitions, this, report)]
    pending: dict[str, list[Revision]] = {day: [] for day in wanted}
    for revision in market.provenance.pending_revisions():
        if revision.partition in pending:
            pending[revision.partition].append(revision)

    def batches(requests: Sequence[Request]) -> Generator[Batch, None, None]:
        yield [_compared(market, r.partition, pending[r.partition]) for r in requests]

    def reported(reports: Sequence[PartitionReport]) -> None:
        report(reports)
        done = [one.partition for one in reports if one.outcome == "committed"]
        market.provenance.mark_recorded([r for partition in done for r in pending[partition]])

    market.materialization(FILL, REVISIONS, this, reported).run(wanted, batches)


def _compared(market: MarketService, partition: str, pending: Sequence[Revision]) -> Built | NotBuilt:
    frames = [REVISIONS.schema.empty_table()]
    day = date.fromisoformat(partition)
    for revision in pending:
        endpoint = market.catalogue.by_name(revision.table_name.split(".", 1)[1])
        try:
            old, new = (
                _rows_at(market, endpoint.table, partition, snapshot)
                for snapshot in (revision.old_snapshot_id, revision.new_snapshot_id)
            )
        except (SnapshotGone, DataCorrupt) as error:
            # No attempt brings the old values back: the table says so, and the next revision is compared.
            log.warning("the values before a revision are lost: %s", error.message)
            frames.append(lost_revision(endpoint, day, revision.seen_at))
        except DataUnavailable as error:
            return NotBuilt(partition, error)  # nothing is lost: the day waits
        else:
            frames.append(revisions(endpoint, day, revision.seen_at, old, new))
    return Built(partition, {REVISIONS.name: pa.concat_tables(frames)}, merge=True)


def _rows_at(market: MarketService, table: Table, day: str, snapshot: int | None) -> pa.Table:
    """The rows of a day in a snapshot; a day that was empty, or is now, has no snapshot of its own."""
    if snapshot is None:
        return table.schema.empty_table()
    query = f"SELECT * FROM {table.name} WHERE trade_date = DATE '{day}'"
    return market.lake.query(query, as_of={table.name: snapshot}, partitions={table.name: [day]})
