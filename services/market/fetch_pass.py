"""One pass over the days of a table: ask, judge, commit by month, record.

The order is what makes it safe to kill at any moment: lake commit, then Dagster's event, then the record,
then the work's end. A commit without its record looks like a foreign hand at the next look and is fetched
again; one without its event would never be shown, as whoever looks finds it whole.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from domain.market.answer import NotYetData, check_answer
from domain.market.catalogue import Endpoint
from domain.market.completeness import SAYS_SO, Judgement
from domain.shared.collection import collected_rarely
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, Version
from resources.lake.error import DataUnavailable
from resources.ledger.provenance import PartitionRecord
from resources.tushare.errors import QuotaUsedUp, RateLimited
from services.market.passes import DayReport, Pass, Report, progress
from services.market.service import MarketService

if TYPE_CHECKING:
    from resources.ledger.client import Lease
    from resources.tushare.request import Request

CODES_PER_CALL = 500
MINUTES_WAITED = 3
"""How often a call of a range is made again after the source refused it for the minute."""
log = logging.getLogger("perennial.market")


@dataclass
class FetchOutcome:
    """The answers of one pass, sorted by what they mean."""

    later: dict[date, TransientResourceError] = field(default_factory=dict)
    """Worth another pass within the run."""
    settled: dict[date, PerennialError] = field(default_factory=dict)
    """Put off or given up in the ledger."""
    halt: PerennialError | None = None
    """The source will answer nothing more for now."""
    committed: dict[date, int] = field(default_factory=dict)


class Unforeseen(PerennialError):
    """An exception nobody classified, met while one day was fetched. Few attempts, then a person looks."""

    reason_code = "unclassified"


def _unforeseen(error: Exception) -> Unforeseen:
    wrapped = Unforeseen(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


@dataclass(frozen=True)
class Answer:
    frame: pa.Table
    judgement: Judgement
    seconds: float


@dataclass
class FetchPass:
    market: MarketService
    endpoint: Endpoint
    this: Pass
    lease: Lease
    outcome: FetchOutcome
    report: Report

    @collected_rarely()
    def run(self, days: Sequence[date]) -> None:
        """Month after month: while one is committed, the next is already being fetched."""
        months = [list(g) for _, g in groupby(days, key=lambda d: (d.year, d.month))]
        if not months:
            return
        pool = ThreadPoolExecutor(self.market.workers, thread_name_prefix=f"fetch-{self.endpoint.endpoint}")
        try:
            ahead = self._submit(pool, months[0])
            for number, _ in enumerate(months):
                asked = ahead
                ahead = self._submit(pool, months[number + 1]) if number + 1 < len(months) else {}
                self._commit(dict(self._collect(asked)))
                done = len(self.outcome.committed)
                progress.info("%s: %d of %d days committed", self.endpoint.name, done, len(days))
        finally:
            # Interrupted, nobody wants the calls that have not begun; otherwise there are none left.
            pool.shutdown(cancel_futures=True)

    def _submit(self, pool: ThreadPoolExecutor, days: Sequence[date]) -> dict[date, Future[Answer]]:
        days = self._writable(days)
        expected = self.market.expected(days) if self.endpoint.expected != "unknown" else {}
        return {
            day: pool.submit(self._fetch, day, expected.get((self.endpoint.name, str(day)))) for day in days
        }

    def _writable(self, days: Sequence[date]) -> list[date]:
        """Without those that are there and cannot be read now: refused one by one, they hold up no others."""
        held = self.market.lake.versions(self.endpoint.table.name, [str(d) for d in days])
        for day in days:
            if unavailable := held[str(day)].unavailable:
                self._refuse(day, DataUnavailable(unavailable))
        return [d for d in days if not held[str(d)].unavailable]

    def _fetch(self, day: date, expected: int | None) -> Answer:
        if self.outcome.halt is not None:
            raise self.outcome.halt
        began = time.monotonic()
        request = self._request(day)
        frame = self._ask(day, request)
        judgement = check_answer(self.endpoint, day, frame, expected, self.market.clock())
        return Answer(frame, judgement, time.monotonic() - began)

    def _ask(self, day: date, request: Request) -> pa.Table:
        """One call. In a range, one refused for the minute waits for the next: put off in the ledger, days
        by the hundred would come back as a run each."""
        for patience in reversed(range(MINUTES_WAITED)):
            try:
                return self.market.source.fetch(request, narrow=lambda params: self._narrow(day, params))
            except RateLimited:
                if not patience or len(self.lease.keys) == 1:
                    raise
        raise AssertionError("unreachable")

    def _request(self, day: date) -> Request:
        from resources.tushare.request import Request

        return Request(
            self.endpoint.endpoint, {"trade_date": f"{day:%Y%m%d}"}, schema=self.endpoint.source_schema
        )

    def _narrow(self, day: date, params: Mapping[str, str]) -> list[dict[str, str]]:
        """A page was full: ask for the listed stocks, some hundred codes at a time."""
        if "ts_code" in params:
            return []
        codes = self.market.listed_codes(day)
        return [
            {**params, "ts_code": ",".join(codes[i : i + CODES_PER_CALL])}
            for i in range(0, len(codes), CODES_PER_CALL)
        ]

    def _collect(self, asked: Mapping[date, Future[Answer]]) -> Iterator[tuple[date, Answer]]:
        for day, future in asked.items():
            try:
                yield day, future.result()
            except PerennialError as error:
                self._refuse(day, error)
            except Exception as error:
                log.exception("%s %s", self.endpoint.endpoint, day)
                self._refuse(day, _unforeseen(error))

    def _refuse(self, day: date, error: PerennialError) -> None:
        """Sort a failure: another pass of this run, a later run, or a person."""
        key = f"{self.endpoint.name}:{day}"
        if isinstance(error, NotYetData):
            self.report([DayReport(day, "refused", why=error.message)])
        if isinstance(error, Unforeseen):
            self.lease.defer(key, error)
            self.outcome.settled[day] = error
        elif not isinstance(error, TransientResourceError):
            self.lease.fail(key, error)
            self.outcome.settled[day] = error
            self.outcome.halt = error
        elif error.retry_in_run:
            self.outcome.later[day] = error
        else:
            self.lease.defer(key, error)
            self.outcome.settled[day] = error
            if isinstance(error, QuotaUsedUp):
                self.outcome.halt = error

    def _commit(self, answers: Mapping[date, Answer]) -> None:
        """One commit for all answers of a month, then their records, then the end of their work."""
        if not answers:
            return
        name, partitions = self.endpoint.table.name, [str(d) for d in answers]
        before = self.market.states([self.endpoint.name], partitions)
        full = {
            d: a
            for d, a in answers.items()
            if a.frame.num_rows or before[self._state_key(d)].version != ABSENT
        }
        versions: dict[str, Version] = dict.fromkeys(partitions, ABSENT)
        snapshot, parent = None, None
        if full:
            frame = pa.concat_tables([a.frame for a in full.values()])
            commit = self.market.lake.replace_range(
                name,
                [str(d) for d in full],
                frame,
                allow_empty=self.endpoint.may_be_empty,
                guard=self.lease.check,
            )
            versions |= commit.versions
            snapshot, parent = commit.snapshot_id, commit.parent_id
        self.report(
            [
                DayReport(
                    day,
                    "committed",
                    versions[str(day)],
                    answer.judgement,
                    snapshot,
                    answer.seconds,
                    self.this.retry,
                    explained=_explained(before[self._state_key(day)], versions[str(day)], answer.judgement),
                )
                for day, answer in answers.items()
            ]
        )
        self._record(answers, before, versions, snapshot, parent)
        for day, answer in answers.items():
            status = answer.judgement.status
            self.lease.complete(
                f"{self.endpoint.name}:{day}", reason_code="" if status == "complete" else status
            )
            self.outcome.committed[day] = versions[str(day)].rows
        # Writes the answers: a killed run must not leave finished work behind as unfinished.
        self.lease.check()

    def _record(
        self,
        answers: Mapping[date, Answer],
        before: Mapping[tuple[str, str], PartitionState],
        versions: Mapping[str, Version],
        snapshot: int | None,
        parent: int | None,
    ) -> None:
        """Note what was committed. Content that replaced other content of the source's is a revision."""
        records: dict[int | None, list[PartitionRecord]] = {}
        for day, answer in answers.items():
            state, version = before[self._state_key(day)], versions[str(day)]
            record = PartitionRecord(
                table_name=self.endpoint.table.name,
                partition=str(day),
                rows=version.rows,
                digest=version.digest,
                snapshot_id=snapshot,
                detail={
                    "status": answer.judgement.status,
                    "expected": answer.judgement.expected,
                    "ratio": answer.judgement.ratio,
                    "fetches": _fetches(state, answer.judgement),
                    "seconds": round(answer.seconds, 3),
                },
                run_id=self.this.run_id,
            )
            # The snapshot just before this commit shows the old content, unless some other hand was in the
            # lake since; then only the snapshot that first had it does.
            records.setdefault(parent if state.untouched else None, []).append(record)
        for shows_old, noted in records.items():
            self.market.provenance.record(noted, revision=True, parent_snapshot_id=shows_old)

    def _state_key(self, day: date) -> tuple[str, str]:
        return self.endpoint.name, str(day)


def _explained(state: PartitionState, version: Version, judgement: Judgement) -> bool:
    again = state.seen_count + 1 if state.recorded == version else 1
    return judgement.status == "partial" and again >= SAYS_SO


def _fetches(state: PartitionState, judgement: Judgement) -> int:
    """How often in a row the day was fetched and judged so: a day that turns partial is asked again soon."""
    alike = state.detail.get("status") == judgement.status
    return int(state.detail.get("fetches", 0)) + 1 if alike else 1
