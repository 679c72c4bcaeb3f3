"""What the market brings to a reconcile pass: its plan, what is given up, which tables share a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from operator import attrgetter

from domain.market.completeness import THINNER
from domain.market.derived import ADJUSTED_FROM, derivable
from domain.market.observed import Observed
from domain.market.plan import FILL, REFRESH, take
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, DERIVED, REVISIONS
from domain.market.trading import ranges
from domain.shared.verdict import Plan, Verdict
from domain.shared.work import DEFERRED, WAITING, Work, split_key
from resources.ledger.client import Ledger
from resources.ledger.model import Dispatch
from services.market.history import PATIENCE
from services.market.service import MarketService
from services.reconcile import Reconciler, RunStart, Unfinished, start_of

OF_ANY_DAY = (COVERAGE.table, REVISIONS.table)
"""What can be derived of a day whatever is there of it."""
ATTEMPTS_OUTSIDE = 8
"""After so many a day before the window that was never recorded is given up; inside it, none is."""
REFERENCES = 8
"""References per pass; there are three at most, in January or December four."""


@dataclass(frozen=True)
class MarketReconciler(Reconciler):
    """A pass without `references` enqueues these and leaves it to another to start them."""

    market: MarketService
    references: bool = True
    ranges: bool = False
    """Whether older days that follow each other are one run: for a command that goes on with a backfill."""
    name: str = "market"
    kinds: tuple[str, ...] = (FILL, REFRESH)

    @property
    def ledger(self) -> Ledger:
        return self.market.ledger

    @cached_property
    def _fetched(self) -> frozenset[str]:
        return frozenset(e.name for e in self.market.catalogue.daily)

    def observe(self) -> Observed:
        return self.market.observe(patience=PATIENCE)

    def plan_of(self, seen: Observed, refused: Collection[str]) -> Plan:  # noqa: ARG002
        return self.market.plan_of(seen, self.market.clock())

    def wanted(self, plan: Plan, known: Collection[str]) -> Sequence[Verdict]:
        return take(plan, self.market.rules.limit, known.__contains__)

    def withdraw(self, plan: Plan, rows: Sequence[Work], unfinished: Unfinished) -> None:  # noqa: ARG002
        """Give up what would be tried hourly for ever: old days that the source does not have, which the
        finding `never_fetched` names, and days kept from fewer rows that are not asked for any more."""
        put_off = [row for row in rows if row.kind == FILL and row.status == DEFERRED]
        due = {v.key for v in plan.due}
        kept = [row for row in put_off if row.reason_code == THINNER and row.key not in due]
        if kept:
            self.ledger.supersede(kept)
        judged = {v.key for v in plan.verdicts}
        often = [row for row in put_off if row.attempts >= ATTEMPTS_OUTSIDE and row.key not in judged]
        # Those never fetched may be wanted all the same; without a calendar no day is judged.
        if not often or self.market.rules.heal_history or not (near := self.market.window()):
            return
        often = [row for row in often if row.partition < str(near[0])]
        names = {f"market.{row.table}" for row in often if row.table in self._fetched}
        known = self.market.provenance.records(names, {row.partition for row in often}) if names else {}
        if old := [row for row in often if (f"market.{row.table}", row.partition) not in known]:
            self.ledger.supersede(old, reason_code="outside_window")

    def dispatch(self, plan: Plan, unfinished: Unfinished, at_once: int) -> list[Dispatch]:  # noqa: ARG002
        busy = unfinished.dispatches
        found: list[Dispatch] = []
        if self.references:
            found += self.ledger.dispatch(REFRESH, limit=min(at_once, REFERENCES), busy=busy)
        room = min(at_once - len(found), self.market.rules.limit)
        return [*found, *self._dispatch_days(unfinished, room)] if room else found

    def _dispatch_days(self, unfinished: Unfinished, limit: int) -> list[Dispatch]:
        """Days of the window first; older ones only until so many days are under way.

        Of the older ones thousands may be due at once, and each is a run. Those of the window are few, and
        wait for nothing.
        """
        day, busy = attrgetter("partition"), unfinished.dispatches
        send = partial(self.ledger.dispatch, FILL, group=day, order="newest", busy=busy)
        near = set(map(str, self.market.window()))
        found = send(limit=limit, only=lambda row: row.partition in near)
        room = min(limit - len(found), self.market.rules.limit - len(self._days_under_way(unfinished)))
        if room > 0 and self.ranges:
            ranges = self._ranges(near)
            found += send(
                limit=room, group=lambda row: ranges[row.partition], only=lambda row: row.partition in ranges
            )
        elif room > 0:
            found += send(limit=room, only=lambda row: row.partition not in near)
        return found

    def _ranges(self, near: Collection[str]) -> dict[str, str]:
        """Return by due older day the newest day of its range: open days that follow each other, of which the
        same tables are due."""
        now, tables = self.ledger.clock(), defaultdict[str, set[str]](set)
        for row in self.ledger.current((FILL,)):
            if row.status in WAITING and row.not_before <= now and row.partition not in near:
                tables[row.partition].add(row.table)
        calendar = self.market.calendar()

        def parted(before: date, after: date) -> bool:
            return not calendar.follow(before, after) or tables[f"{before}"] != tables[f"{after}"]

        days = map(date.fromisoformat, sorted(tables))
        return {f"{day}": f"{run[-1]}" for run in ranges(days, parted) for day in run}

    def _days_under_way(self, unfinished: Unfinished) -> set[str]:
        """The days whose run was dispatched and has not ended: not those of a backfill or a click."""
        tables = {*self._fetched, *(t.table for t in DERIVED)}
        dispatched = {
            row.partition
            for row in self.market.fills_under_way(unfinished.dispatches)
            if row.dispatch_id is not None
        }
        return dispatched.union(
            day for key in unfinished.keys for table, day in [split_key(key)] if table in tables
        )

    def starts(self, plan: Plan, dispatches: Sequence[Dispatch]) -> list[RunStart]:
        days = sorted({row.partition for d in dispatches for row in d.rows if row.kind == FILL})
        states = self.market.states(ADJUSTED_FROM, days) if days else {}
        waiting = {v.key for v in plan.verdicts if v.blocked}
        starts = []
        for one in dispatches:
            tables = list(dict.fromkeys(row.table for row in one.rows))
            days = sorted({row.partition for row in one.rows})
            if self._fetched.intersection(tables):
                # The run of a day ends with what can be derived from it.
                can = all(derivable(tables, day, states) for day in days)
                adjusted = [ADJUSTED_DAILY.table] if can else []
                more = (*adjusted, *OF_ANY_DAY)
                tables += [t for t in more if not waiting.intersection(f"{t}:{day}" for day in days)]
                tables = list(dict.fromkeys(tables))
            starts.append(start_of(self.namespace, one, tables))
        return starts
