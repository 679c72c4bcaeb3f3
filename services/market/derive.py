"""Deriving days from what is in the lake: adjusted prices, coverage, revisions. No Dagster here.

Every derived partition records the versions it was made from; the plan asks for it again when they change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import date
from itertools import groupby

import pyarrow as pa

from domain.market.catalogue import Endpoint
from domain.market.derived import ADJUSTED_FROM, adjusted_inputs, coverage_inputs
from domain.market.observed import Observed
from domain.market.plan import FILL
from domain.market.reckoning import adjusted_daily, coverage, lost_revision, revisions
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.market.trading import TradingCalendar
from domain.shared.error import TransientResourceError
from domain.shared.table import Table
from resources.lake.error import DataCorrupt, DataUnavailable, SnapshotGone
from resources.ledger.provenance import PartitionRecord
from services.market.fetch import keep_whole
from services.market.passes import CalendarMissing, DayReport, Pass, Report, progress
from services.market.service import MarketService, dates

log = logging.getLogger("perennial.market")

Compute = Callable[[Observed, Sequence[date]], pa.Table]
Inputs = Callable[[Observed, str], "dict[str, str] | None"]


class InputMissing(TransientResourceError):
    """What the partition is made from is not there, or not whole; the plan asks again when it is."""

    reason_code = "input_missing"
    retry_in_run = False


def derive_adjusted(market: MarketService, days: Sequence[date], this: Pass, report: Report) -> None:
    def compute(_: Observed, wanted: Sequence[date]) -> pa.Table:
        daily, factors = (
            market.lake.query(
                f"SELECT * FROM market.{name} WHERE trade_date IN ({dates(wanted)})",
                partitions={f"market.{name}": [str(d) for d in wanted]},
            )
            for name in ADJUSTED_FROM
        )
        return adjusted_daily(daily, factors)

    _derive(market, ADJUSTED_DAILY, days, this, report, adjusted_inputs, compute)


def derive_coverage(market: MarketService, days: Sequence[date], this: Pass, report: Report) -> None:
    def compute(seen: Observed, wanted: Sequence[date]) -> pa.Table:
        whole = [e for e in market.catalogue.daily if e.expected != "unknown"]
        present = [
            market.lake.query(
                f"SELECT '{e.name}' AS table_name, trade_date, ts_code FROM {e.table.name} "
                f"WHERE trade_date IN ({dates(readable)})",
                partitions={e.table.name: [str(d) for d in readable]},
            )
            for e in whole
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

    _derive(market, COVERAGE, days, this, report, inputs, compute)


# Not the empty table itself: making one at import would load pandas.
_PRESENT = pa.schema([("table_name", pa.string()), ("trade_date", pa.date32()), ("ts_code", pa.string())])


def derive_revisions(market: MarketService, days: Sequence[date], this: Pass, report: Report) -> None:
    """Compare what the source says now with what it said before, while both snapshots are kept."""
    wanted = _open_days(market.calendar(), days, report)
    with market.ledger.lease(FILL, [f"{REVISIONS.table}:{d}" for d in wanted], this.run_id) as lease:
        pending = [
            r for r in market.provenance.pending_revisions() if r.partition in {str(d) for d in wanted}
        ]
        found: list[pa.Table] = []
        unavailable: dict[str, DataUnavailable] = {}
        for revision in pending:
            endpoint = market.catalogue.by_name(revision.table_name.split(".", 1)[1])
            day = date.fromisoformat(revision.partition)
            try:
                old, new = (
                    _as_it_was(market, endpoint, revision.partition, snapshot)
                    for snapshot in (revision.old_snapshot_id, revision.new_snapshot_id)
                )
            except (SnapshotGone, DataCorrupt) as error:
                # No attempt brings it back: say so where people look for it, and go on.
                log.warning("the values before a revision are lost: %s", error.message)
                found.append(lost_revision(endpoint, day, revision.seen_at))
            except DataUnavailable as error:
                unavailable[revision.partition] = error  # nothing is lost: its day waits, the others do not
            else:
                found.append(revisions(endpoint, day, revision.seen_at, old, new))
        if any(frame.num_rows for frame in found):
            market.lake.merge(REVISIONS.name, pa.concat_tables(found), guard=lease.check)
        versions = market.lake.versions(REVISIONS.name, [str(d) for d in wanted])
        told = [d for key in lease.keys if (d := key.split(":", 1)[1]) not in unavailable]
        report([DayReport(date.fromisoformat(d), "committed", versions[d]) for d in told])
        market.provenance.mark_recorded([r for r in pending if r.partition not in unavailable])
        for partition in told:
            lease.complete(f"{REVISIONS.table}:{partition}")
        for partition, why in unavailable.items():
            lease.defer(f"{REVISIONS.table}:{partition}", why)
    for why in unavailable.values():
        raise why


def _as_it_was(market: MarketService, endpoint: Endpoint, day: str, snapshot: int | None) -> pa.Table:
    """The rows of a day in a snapshot. A day that was empty before, or is now, has none of its own."""
    if snapshot is None:
        return endpoint.table.schema.empty_table()
    name = endpoint.table.name
    query = f"SELECT * FROM {name} WHERE trade_date = DATE '{day}'"
    return market.lake.query(query, as_of={name: snapshot}, partitions={name: [day]})


def _open_days(calendar: TradingCalendar, days: Sequence[date], report: Report) -> list[date]:
    if unknown := sorted({d.year for d in days if not calendar.knows(d)}):
        raise CalendarMissing(f"the trading calendar of {', '.join(map(str, unknown))} is not there")
    report([DayReport(d, "closed") for d in days if not calendar.is_open(d)])
    return [d for d in sorted(days) if calendar.is_open(d)]


def _inputs(seen: Observed, table: Table, partition: str, inputs_of: Inputs) -> dict[str, str] | None:
    """None also for a day that is there and cannot be read now: it is not written over."""
    return None if seen.state(table.table, partition).version.unavailable else inputs_of(seen, partition)


def _derive(
    market: MarketService,
    table: Table,
    days: Sequence[date],
    this: Pass,
    report: Report,
    inputs_of: Inputs,
    compute: Compute,
) -> None:
    calendar = market.calendar()
    wanted = _open_days(calendar, days, report)
    if this.only_needed:
        wanted = keep_whole(market, table.table, wanted, report)
    missing: list[date] = []
    with market.ledger.lease(FILL, [f"{table.table}:{d}" for d in wanted], this.run_id) as lease:
        held = [d for d in wanted if f"{table.table}:{d}" in set(lease.keys)]
        for _, group in groupby(held, key=lambda d: (d.year, d.month)):
            month = list(group)
            began = time.monotonic()
            seen = market.observe_days(month, calendar)
            inputs = {d: _inputs(seen, table, str(d), inputs_of) for d in month}
            ready = [d for d in month if inputs[d] is not None]
            for day in month:
                if inputs[day] is None:
                    missing.append(day)
                    # No attempt will mend it: the plan asks again when the inputs are there.
                    lease.skip(f"{table.table}:{day}", InputMissing.reason_code)
            if not ready:
                continue
            commit = market.lake.replace_range(
                table.name, [str(d) for d in ready], compute(seen, ready), guard=lease.check
            )
            seconds = (time.monotonic() - began) / len(ready)
            report(
                [
                    DayReport(
                        d,
                        "committed",
                        commit.versions[str(d)],
                        snapshot_id=commit.snapshot_id,
                        seconds=seconds,
                    )
                    for d in ready
                ]
            )
            market.provenance.record(
                [
                    PartitionRecord(
                        table_name=table.name,
                        partition=str(d),
                        rows=commit.versions[str(d)].rows,
                        digest=commit.versions[str(d)].digest,
                        snapshot_id=commit.snapshot_id,
                        inputs=inputs[d] or {},
                        detail={"status": "complete", "seconds": round(seconds, 3)},
                        run_id=this.run_id,
                    )
                    for d in ready
                ]
            )
            for day in ready:
                lease.complete(f"{table.table}:{day}")
            progress.info("%s: %d of %d days committed", table.table, held.index(month[-1]) + 1, len(held))
    if missing:
        raise InputMissing(
            f"{table.table}: the inputs of {len(missing)} of {len(days)} days are missing: {missing[0]} …",
            remedy="materialise its upstream tables for these days; the gap-fill sensor does it by itself",
        )
