"""The ledger beside a plain model of it: any order of wishes, runs, workers, crashes, people and time.

Two ledgers speak to one database, as two processes would. An operation that reads before it writes may be
interrupted in between by the other one. After each step the whole database must be what the model says,
and must keep the promises that do not depend on the model.

A failure prints its steps, and a blob: put `@reproduce_failure(...)` on `LedgerModel` to replay it, or run
with the `--hypothesis-seed` it names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, event, select

from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.client import HeldElsewhere, Lease, LeaseLost, Ledger, Work
from resources.ledger.dispatch import Order
from resources.ledger.schema import work, work_event
from tests.integration.conftest import FILL, FINITE, START, Hands

Deed = tuple[str, int]
"""What the other ledger does in the middle, and to which one of what it may choose from."""
EXAMPLES = {"sqlite": 80, "postgresql": 25}
STEPS = 40

WAITING = {"queued", "deferred"}
VERDICTS = {"completed", "failed", "skipped"}
FINISHED = {*VERDICTS, "cancelled"}
LEASE = timedelta(seconds=60)
HOUR = timedelta(hours=1)
LONGEST = HOUR + LEASE
APART = timedelta(minutes=5)
PUT_BACK = "clock_put_back"
RUNS = ("run 1", "run 2", "run 3")
WORKERS = ("worker:1", "worker:2")

KINDS = st.sampled_from([FILL.name, FINITE.name])
KEYS = st.sampled_from(["a", "a", "b", "b", "c"])
WISHES = st.builds(
    WorkRequest,
    kind=KINDS,
    key=KEYS,
    fingerprint=st.sampled_from(["f1", "f2", "f3"]),
    tenant=st.sampled_from(["t1", "t2"]),
    priority=st.integers(0, 1),
    not_before=st.sampled_from([None, None, START + timedelta(minutes=1), START + timedelta(hours=2)]),
    once=st.sampled_from([False, False, False, True]),
)
PICK = st.integers(0, 2) | st.integers(0, 30)
"""One of a list that is not known yet, counted from its newest."""


@dataclass(frozen=True)
class Ending:
    """How an attempt ends, and what is said to the ledger about it."""

    verb: str
    error: Exception | None = None
    after: timedelta | None = None

    @property
    def unclassified(self) -> bool:
        return isinstance(self.error, ZeroDivisionError)


DOWN = Ending("defer", TransientResourceError("down"))
BUG = Ending("defer", ZeroDivisionError("oops"))
HOPELESS = Ending("fail", PermanentRunnerError("no"))
GIVEN_BACK = Ending("release")
ENDINGS = st.sampled_from(
    [
        Ending("complete"),
        Ending("complete"),
        Ending("skip"),
        DOWN,
        Ending("defer", TransientResourceError("slow down", retry_after=timedelta(seconds=42))),
        Ending("defer", TransientResourceError("half a day"), after=timedelta(minutes=30)),
        BUG,
        HOPELESS,
        GIVEN_BACK,
    ]
)


@dataclass
class Row:
    """What the model believes of one row of `work`, and the story its events must tell."""

    id: int
    kind: str
    key: str
    fingerprint: str
    once: bool
    not_before: datetime
    repeats: int = 0
    status: str = "queued"
    attempts: int = 0
    strikes: int = 0
    dispatches: int = 0
    dispatch_id: str | None = None
    run_id: str | None = None
    lease_until: datetime | None = None
    fence: int = 0
    finished_at: datetime | None = None
    updated_at: datetime = START
    story: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def ticket(self) -> tuple[int, int]:
        return self.id, self.fence

    @property
    def made_way(self) -> bool:
        return self.story[-1][0] == "superseded"


BELIEFS = tuple(one.name for one in fields(Row) if one.name != "story")


def doubled(base: float, times: int, cap: timedelta = HOUR) -> timedelta:
    return min(timedelta(seconds=base * 2**times), cap)


def fivefold(strikes_before: int) -> timedelta:
    return min(timedelta(seconds=5 * 5**strikes_before), timedelta(seconds=300))


class Book:
    """The rules of the ledger once more, as simply as they can be said; one thing at a time, no database."""

    def __init__(self, clock: Hands) -> None:
        self.clock = clock
        self.rows: dict[int, Row] = {}

    def _of(self, kind: str, key: str) -> list[Row]:
        return [row for row in self.rows.values() if (row.kind, row.key) == (kind, key)]

    def waiting(self, kind: str, key: str) -> Row | None:
        return next((row for row in self._of(kind, key) if row.status in WAITING), None)

    def running(self, kind: str, key: str) -> Row | None:
        return next((row for row in self._of(kind, key) if row.status == "running"), None)

    def standing(self, kind: str, key: str) -> list[Row]:
        """What is finished, said something, and was not taken back by what was said later."""
        said = [row for row in self._of(kind, key) if row.status in FINISHED and not row.made_way]
        return [
            row
            for row in sorted(said, key=lambda row: row.id)
            if not any(
                later.id > row.id and (later.status in VERDICTS or later.fingerprint == row.fingerprint)
                for later in said
            )
        ]

    def word_on(self, item: WorkRequest) -> Row | None:
        """What has been said about a wish."""
        said = self.standing(item.kind, item.key)
        return next((row for row in reversed(said) if item.once or row.fingerprint == item.fingerprint), None)

    def had_by(self, run: str, kind: str, key: str) -> Row | None:
        rows = [row for row in self._of(kind, key) if row.status in FINISHED and row.run_id == run]
        return max(rows, key=lambda row: row.id, default=None)

    def due(self, kind: str, now: datetime) -> set[int]:
        return {
            row.id
            for row in self.rows.values()
            if row.kind == kind
            and row.status in WAITING
            and row.not_before <= now
            and self.running(kind, row.key) is None
        }

    def held_under(self, ticket: tuple[int, int]) -> Row | None:
        row = self.rows.get(ticket[0])
        return row if row and row.status == "running" and row.fence == ticket[1] else None

    def orphans(self, finished: Sequence[str], machine_now: datetime) -> set[int]:
        return {
            row.id
            for row in self.rows.values()
            if row.status == "running"
            and (
                (row.run_id in finished and row.run_id not in WORKERS)
                or (row.lease_until is not None and row.lease_until < machine_now)
            )
        }

    def impossible(self, machine_now: datetime) -> set[int]:
        return {
            row.id
            for row in self.rows.values()
            if row.lease_until is not None and row.lease_until > machine_now + LONGEST
        }

    def lease_cut(self, row: Row, machine_now: datetime) -> None:
        newest = [event for event, *_ in row.story if event != PUT_BACK][-1]
        row.lease_until = machine_now + (
            LONGEST if newest == "pass_failed" or row.run_id in WORKERS else LEASE
        )
        if row.story[-1][0] != PUT_BACK:
            row.story.append((PUT_BACK, row.status, row.attempts))

    def reckoned(self, row: Row) -> None:
        """A wait that began later than now begins now."""
        now = self.clock()
        if row.updated_at > now + APART:
            row.not_before = now + max(row.not_before - row.updated_at, timedelta(0))
            row.updated_at = now

    def waits_reckoned(self) -> None:
        now = self.clock()
        for row in self.rows.values():
            if row.status in WAITING and row.updated_at > now + APART and row.not_before > now:
                self.reckoned(row)
                self.tell(row, PUT_BACK)

    def born(self, row: Row) -> None:
        self.rows[row.id] = row
        self.tell(row, "created")

    def tell(self, row: Row, happened: str, **records: Any) -> None:
        for name, value in records.items():
            setattr(row, name, value)
        row.updated_at = self.clock()
        row.story.append((happened, row.status, row.attempts))

    def wished(self, item: WorkRequest, now: datetime) -> Row | None:
        """The generation this wish must create, without its id; None where none may be."""
        due = item.not_before or now
        row = Row(0, item.kind, item.key, item.fingerprint, item.once, due)
        if self.waiting(item.kind, item.key):
            return None
        if running := self.running(item.kind, item.key):
            return None if running.fingerprint == item.fingerprint else row
        last = self.word_on(item)
        if last is None:
            return row
        if item.once or last.status in ("failed", "cancelled"):
            return None
        ended = min(last.finished_at, now)
        if now - ended <= LEASE:
            row.repeats = last.repeats + 1
            wait = doubled(30, row.repeats - 3) if row.repeats > 2 else timedelta(0)
            row.not_before = max(due, ended + wait)
        return row

    def rewished(self, row: Row, item: WorkRequest, now: datetime) -> None:
        """A waiting row takes the newer wish."""
        self.reckoned(row)
        untouched = row.status == "queued" and row.dispatch_id is None and row.attempts == 0
        if untouched and row.fingerprint != item.fingerprint:
            row.not_before, row.repeats = item.not_before or now, 0
        self.tell(row, "updated", fingerprint=item.fingerprint, once=item.once)

    def sent(self, row: Row, dispatch_id: str, now: datetime) -> None:
        patience = doubled(120, row.dispatches, timedelta(minutes=15))
        self.tell(
            row,
            "dispatched",
            status="queued",
            dispatch_id=dispatch_id,
            dispatches=row.dispatches + 1,
            not_before=now + patience,
        )

    def taken(self, row: Row, holder: str, lease_until: datetime) -> None:
        again = row.run_id == holder and holder not in WORKERS
        self.tell(
            row,
            "adopted" if row.status == "running" else "claimed",
            status="running",
            run_id=holder,
            lease_until=lease_until,
            fence=row.fence + 1,
            attempts=row.attempts + (not again),
            dispatches=0,
        )

    def ends(self, row: Row, status: str, happened: str, now: datetime, **records: Any) -> None:
        self.tell(
            row,
            happened,
            status=status,
            lease_until=None,
            fence=row.fence + 1,
            finished_at=now,
            **records,
        )

    def waits(self, row: Row, status: str, happened: str, now: datetime, **records: Any) -> None:
        """Waits again; or hands what it went through to a newer wish that waits already."""
        heir = self.waiting(row.kind, row.key)
        if heir is None or heir is row:
            self.tell(
                row,
                happened,
                status=status,
                lease_until=None,
                dispatch_id=None,
                fence=row.fence + 1,
                **records,
            )
            return
        self.reckoned(heir)
        self.tell(
            heir,
            "inherited",
            status=status,
            attempts=records.get("attempts", row.attempts),
            strikes=records.get("strikes", row.strikes),
            not_before=max(heir.not_before, records["not_before"]),
        )
        self.ends(row, "cancelled", "superseded", now)

    def ended(self, row: Row, how: Ending, now: datetime) -> None:
        if how.verb == "complete":
            self.ends(row, "completed", "completed", now)
        elif how.verb == "skip":
            self.ends(row, "skipped", "skipped", now)
        elif how.verb == "fail":
            self.ends(row, "failed", "failed", now)
        elif how.verb == "release":
            given_back = {"attempts": max(row.attempts - 1, 0), "run_id": None, "not_before": now}
            self.waits(row, "queued", "released", now, **given_back)
        else:
            self._put_off(row, how, now)

    def _put_off(self, row: Row, how: Ending, now: datetime) -> None:
        strikes = row.strikes + how.unclassified
        finite = row.kind == FINITE.name
        hopeless = (finite and row.attempts >= 3) or (how.unclassified and strikes >= 3)
        retry_after = getattr(how.error, "retry_after", None)
        if how.after is not None:
            due = now + how.after
        elif hopeless:
            self.ends(row, "failed", "failed", now, strikes=strikes)
            return
        elif how.unclassified:
            due = now + fivefold(strikes - 1)
        else:
            due = now + (retry_after or doubled(10 if finite else 60, max(row.attempts - 1, 0)))
        self.waits(row, "deferred", "deferred", now, strikes=strikes, not_before=due)

    def orphaned(self, row: Row, now: datetime) -> None:
        strikes = row.strikes + 1
        if row.attempts >= 3 if row.kind == FINITE.name else strikes >= 3:
            self.ends(row, "failed", "abandoned", now, strikes=strikes)
            return
        wait = timedelta(0) if strikes == 1 else fivefold(strikes - 2)
        self.waits(row, "queued", "orphaned", now, strikes=strikes, not_before=now + wait)


@dataclass
class Hand:
    """A run with a hold open, and what it said so far."""

    lease: Lease
    run: str
    final: bool
    tickets: dict[str, tuple[int, int]]
    busy: set[str]
    said: dict[str, Ending] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


class LedgerModel(RuleBasedStateMachine):
    ledgers: ClassVar[tuple[Ledger, Ledger]]
    clock: ClassVar[Hands]
    machine: ClassVar[Hands]

    def __init__(self) -> None:
        super().__init__()
        self.clock.now = self.machine.now = START
        with self.ledgers[0].engine.begin() as connection:
            connection.execute(delete(work_event))
            connection.execute(delete(work))
        self.book = Book(self.clock)
        self.hands: list[Hand] = []
        self.tickets: list[tuple[int, int]] = []
        self.sendings: list[str] = []
        self.ids = [0]
        """Every id ever given, and one that never was."""
        self.purged: set[int] = set()
        self.before: dict[int, Work] = {}

    @initialize(items=st.lists(WISHES, min_size=1, max_size=6))
    def somebody_wishes(self, items: list[WorkRequest]) -> None:
        self._enqueue(self.ledgers[0], items)

    # Time

    @rule(
        business=st.sampled_from([0, 1, 30, 61, 130, 3_600]),
        machine=st.sampled_from([0, 1, 30, 60, 61]),
    )
    def time_passes(self, business: int, machine: int) -> None:
        self.clock.advance(seconds=business)
        self.machine.advance(seconds=machine)

    @rule(
        business=st.sampled_from([timedelta(0), APART, timedelta(days=1)]),
        machine=st.sampled_from([timedelta(0), APART, timedelta(days=1)]),
    )
    def clocks_that_ran_ahead_are_put_right(self, business: timedelta, machine: timedelta) -> None:
        self.clock.now -= business
        self.machine.now -= machine

    # Wishes and their dispatch

    @rule(ledger=st.integers(0, 1), items=st.lists(WISHES, min_size=1, max_size=3), twice=st.booleans())
    def enqueue(self, ledger: int, items: list[WorkRequest], twice: bool) -> None:
        self._enqueue(self.ledgers[ledger], items)
        if twice:
            again = self.ledgers[1 - ledger].enqueue(items).counts
            assert again["created"] == again["updated"] == 0, "the same wishes again write nothing"

    def _enqueue(self, ledger: Ledger, items: Sequence[WorkRequest]) -> None:
        now = self.clock()
        report = ledger.enqueue(items)
        told = {
            (row.kind, row.key): (verdict, row)
            for verdict in ("created", "updated", "absorbed", "refused")
            for row in getattr(report, verdict)
        }
        wanted = {(item.kind, item.key): item for item in items}
        assert told.keys() == wanted.keys(), "each key has one answer"
        for place, item in wanted.items():
            verdict, row = told[place]
            waiting, born = self.book.waiting(*place), self.book.wished(item, now)
            if born:
                assert verdict == "created"
                born.id = row.id
                self._born(born)
            elif waiting and verdict == "updated":
                self.book.rewished(waiting, item, now)
            elif waiting:
                assert (verdict, row.id) == ("absorbed", waiting.id)
            else:
                last = self.book.running(*place) or self.book.word_on(item)
                hopeless = last.status in ("failed", "cancelled") and not item.once
                assert (verdict, row.id) == ("refused" if hopeless else "absorbed", last.id)
            self._is_served(item, verdict)

    def _is_served(self, item: WorkRequest, verdict: str) -> None:
        """A live row does what was wished for; but for what is over once for all or waits for a person."""
        place = item.kind, item.key
        if live := self.book.waiting(*place) or self.book.running(*place):
            assert live.fingerprint == item.fingerprint
        else:
            assert item.once or verdict == "refused"

    @rule(
        kind=KINDS,
        limit=st.integers(0, 3),
        grouped=st.booleans(),
        order=st.sampled_from(["oldest", "newest"]),
        busy=st.lists(PICK, max_size=2),
        meanwhile=st.none() | st.tuples(st.sampled_from(["claim", "wish", "cancel", "dispatch"]), PICK),
    )
    def dispatch(
        self, kind: str, limit: int, grouped: bool, order: Order, busy: list[int], meanwhile: Deed | None
    ) -> None:
        busy_ids = {self.sendings[n % len(self.sendings)] for n in busy} if self.sendings else set()
        self._dispatch(self.ledgers[0], kind, limit, grouped, order, busy_ids, meanwhile)

    def _dispatch(
        self,
        ledger: Ledger,
        kind: str,
        limit: int,
        grouped: bool,
        order: Order,
        busy: set[str],
        meanwhile: Deed | None,
    ) -> None:
        def group(row: Work | Row) -> str:
            return "all" if grouped else str(row.id)

        now = self.clock()
        seen = self.book.due(kind, now)
        with self._interrupted(ledger, meanwhile, kind):
            sent = ledger.dispatch(kind, limit=limit, group=group, order=order, busy=busy)
        due = {i for i in seen & self.book.due(kind, now) if self.book.rows[i].dispatch_id not in busy}
        names = [one.group for one in sent]
        assert len(names) == len(set(names)) <= limit
        assert {row.id for one in sent for row in one.rows} <= due, "nothing goes before its time"
        if meanwhile is None:
            groups = {group(self.book.rows[i]) for i in due}
            assert len(names) == min(limit, len(groups)), "what is due and has room goes"
            together = {i for i in due if group(self.book.rows[i]) in names}
            assert {row.id for one in sent for row in one.rows} == together
        for one in sent:
            self.sendings.append(one.id)
            for row in one.rows:
                self.book.sent(self.book.rows[row.id], one.id, now)

    @rule(ledger=st.integers(0, 1), kind=KINDS, holder=st.sampled_from(WORKERS), limit=st.integers(1, 4))
    def claim(self, ledger: int, kind: str, holder: str, limit: int) -> None:
        self._claim(self.ledgers[ledger], kind, holder, limit)

    def _claim(self, ledger: Ledger, kind: str, holder: str, limit: int) -> None:
        due = self.book.due(kind, self.clock())
        rows = ledger.claim(kind, holder=holder, limit=limit)
        assert {row.id for row in rows} <= due, "nothing is claimed before its time"
        assert len(rows) == min(len(due), limit), "what is due and has room is taken, whosever it is"
        for row in rows:
            self.book.taken(self.book.rows[row.id], holder, self.machine() + LEASE)
            self.tickets.append((row.id, row.fence))
            assert self.book.held_under(self.tickets[-1])

    # Answers by id and fence, in time or late

    @precondition(lambda self: self.tickets)
    @rule(ledger=st.integers(0, 1), pick=PICK, how=ENDINGS)
    def answer(self, ledger: int, pick: int, how: Ending) -> None:
        self._answer(self.ledgers[ledger], self.tickets[-1 - pick % len(self.tickets)], how)

    def _answer(self, ledger: Ledger, ticket: tuple[int, int], how: Ending) -> None:
        row = self.book.held_under(ticket)
        if row is None:
            with pytest.raises(LeaseLost):
                self._say(ledger, ticket, how)
        else:
            self._say(ledger, ticket, how)
            self.book.ended(row, how, self.clock())

    def _say(self, ledger: Ledger, ticket: tuple[int, int], how: Ending) -> Work:
        if how.verb == "skip":
            return ledger.skip(*ticket, "closed")
        if how.verb == "defer":
            return ledger.defer(*ticket, how.error, not_before=self._when(how))
        if how.verb == "fail":
            return ledger.fail(*ticket, how.error)
        return getattr(ledger, how.verb)(*ticket)

    def _when(self, how: Ending) -> datetime | None:
        return None if how.after is None else self.clock() + how.after

    # Runs

    @rule(
        kind=KINDS,
        keys=st.lists(KEYS, min_size=1, max_size=2, unique=True),
        run=st.sampled_from([*RUNS, *RUNS, WORKERS[0]]),
        final=st.booleans(),
        meanwhile=st.none()
        | st.tuples(st.sampled_from(["claim", "answer", "wish", "cancel", "sweep"]), PICK),
    )
    def a_run_opens_a_hold(
        self, kind: str, keys: list[str], run: str, final: bool, meanwhile: Deed | None
    ) -> None:
        ledger, now = self.ledgers[0], self.clock()
        lease = ledger.lease(kind, keys, run, final=final, retry_in=timedelta(seconds=10), heartbeat=False)
        with self._interrupted(ledger, meanwhile, kind):
            lease.__enter__()
        busy: dict[str, str] = {}
        done: set[str] = set()
        settled: dict[str, int] = {}
        tickets: dict[str, tuple[int, int]] = {}
        for key in keys:
            running, waiting = self.book.running(kind, key), self.book.waiting(kind, key)
            if running and running.run_id != run:
                busy[key] = running.run_id
                continue
            row = running or waiting
            if row is None and (had := self.book.had_by(run, kind, key)):
                if had.status in ("completed", "skipped"):
                    done.add(key)
                else:
                    settled[key] = had.id
                continue
            if (
                row is waiting
                and row
                and row.status == "deferred"
                and row.run_id == run
                and row.not_before > now
            ):
                settled[key] = row.id
                continue
            if row is None:
                last = next(reversed(self.book.standing(kind, key)), None)
                row = Row(
                    lease.work[key].id,
                    kind,
                    key,
                    last.fingerprint if last else "",
                    bool(last and last.once),
                    now,
                )
                self._born(row)
            self.book.taken(row, run, self.machine() + LEASE)
            tickets[key] = row.ticket
        assert lease.busy == busy, "what another has is left to it"
        assert set(lease.done) == done, "what it has done is not done again"
        assert {key: row.id for key, row in lease.settled.items()} == settled
        assert {key: (row.id, row.fence) for key, row in lease.work.items()} == tickets
        self.hands.append(Hand(lease, run, final, tickets, set(busy)))
        self.tickets += tickets.values()

    @precondition(lambda self: self.hands)
    @rule(pick=PICK, key=PICK, how=ENDINGS)
    def a_run_says_how_a_key_ended(self, pick: int, key: int, how: Ending) -> None:
        hand = self.hands[-1 - pick % len(self.hands)]
        open_keys = sorted(hand.tickets.keys() - hand.said.keys())
        if not open_keys:
            return
        name = open_keys[key % len(open_keys)]
        if how.verb == "release":
            how = Ending("complete")
        if how.verb == "defer":
            # The moment is fixed when it is said, the rest when it is written.
            hand.lease.defer(name, how.error, not_before=self._when(how))
            how = Ending(how.verb, how.error, how.after and self._when(how))
        elif how.verb == "fail":
            hand.lease.fail(name, how.error)
        elif how.verb == "skip":
            hand.lease.skip(name, "closed")
        else:
            hand.lease.complete(name)
        hand.said[name] = how

    @precondition(lambda self: self.hands)
    @rule(pick=PICK)
    def a_run_checks_its_hold(self, pick: int) -> None:
        """The fence is proven and the lease is whole again; what was said is written."""
        self._check(self.hands[-1 - pick % len(self.hands)])

    def _check(self, hand: Hand) -> None:
        self._write_said(hand)
        for name in hand.tickets.keys() - hand.written - hand.lost:
            if row := self.book.held_under(hand.tickets[name]):
                row.lease_until = self.machine() + LEASE
            else:
                hand.lost.add(name)
        if hand.lost:
            with pytest.raises(LeaseLost):
                hand.lease.check()
        else:
            hand.lease.check()

    @precondition(lambda self: self.hands)
    @rule(pick=PICK)
    def a_run_ends_well(self, pick: int) -> None:
        hand = self.hands.pop(-1 - pick % len(self.hands))
        for name in hand.tickets:
            hand.said.setdefault(name, Ending("complete"))
        self._write_said(hand)
        refusal = LeaseLost if hand.lost else HeldElsewhere if hand.busy else None
        if refusal:
            with pytest.raises(refusal):
                hand.lease.__exit__(None, None, None)
        else:
            hand.lease.__exit__(None, None, None)

    @precondition(lambda self: self.hands)
    @rule(pick=PICK, how=st.sampled_from([DOWN, BUG, HOPELESS, GIVEN_BACK]))
    def a_run_ends_with_an_error(self, pick: int, how: Ending) -> None:
        hand = self.hands.pop(-1 - pick % len(self.hands))
        error = how.error or KeyboardInterrupt()
        comes_back = how is DOWN and not hand.final
        if not comes_back:
            for name in hand.tickets:
                hand.said.setdefault(name, how)
        self._write_said(hand)
        for name in hand.tickets.keys() - hand.said.keys() - hand.lost:
            if row := self.book.held_under(hand.tickets[name]):
                self.book.tell(row, "pass_failed", lease_until=self.machine() + LEASE + timedelta(seconds=10))
        hand.lease.__exit__(type(error), error, None)

    @precondition(lambda self: self.hands)
    @rule(pick=PICK)
    def a_run_vanishes(self, pick: int) -> None:
        """Killed: nothing is said any more. The sweep finds what it had."""
        self.hands.pop(-1 - pick % len(self.hands))

    def _write_said(self, hand: Hand) -> None:
        now = self.clock()
        for name, how in hand.said.items():
            if name in hand.written or name in hand.lost:
                continue
            if row := self.book.held_under(hand.tickets[name]):
                moment = how.after if isinstance(how.after, datetime) else None
                self.book.ended(row, Ending(how.verb, how.error, moment and moment - now), now)
                hand.written.add(name)
            else:
                hand.lost.add(name)

    # The sweep, and people

    @rule(
        finished=st.sets(st.sampled_from([*RUNS, WORKERS[0]])),
        meanwhile=st.none() | st.tuples(st.sampled_from(["answer", "beat", "wish", "cancel", "sweep"]), PICK),
    )
    def sweep(self, finished: set[str], meanwhile: Deed | None) -> None:
        self._sweep(self.ledgers[0], sorted(finished), meanwhile)

    def _sweep(self, ledger: Ledger, finished: Sequence[str], meanwhile: Deed | None) -> None:
        seen = self.book.orphans(finished, self.machine())
        suspects = seen | self.book.impossible(self.machine())
        with self._interrupted(ledger, meanwhile, FILL.name):
            swept = ledger.sweep(finished_runs=finished)
        orphans = suspects & self.book.orphans(finished, self.machine())
        assert {one.work.id for one in swept} == orphans, "the dead are found, the living left alone"
        for number in sorted(suspects & self.book.impossible(self.machine()) - orphans):
            self.book.lease_cut(self.book.rows[number], self.machine())
        for number in sorted(orphans):
            self.book.orphaned(self.book.rows[number], self.clock())
        self.book.waits_reckoned()

    @precondition(lambda self: self.book.rows)
    @rule(pick=PICK)
    def a_person_cancels(self, pick: int) -> None:
        self._cancel(self.ledgers[1], pick)

    def _cancel(self, ledger: Ledger, pick: int) -> None:
        number = self.ids[-1 - pick % len(self.ids)]
        row = self.book.rows.get(number)
        if row is None or row.status in FINISHED - {"cancelled"}:
            with pytest.raises(InvalidInput):
                ledger.cancel(number)
            return
        ledger.cancel(number)
        if row.status != "cancelled":
            self.book.ends(row, "cancelled", "cancelled", self.clock())

    @precondition(lambda self: self.book.rows)
    @rule(
        pick=PICK,
        meanwhile=st.none() | st.tuples(st.sampled_from(["claim", "answer", "wish", "cancel"]), PICK),
    )
    def a_person_retries(self, pick: int, meanwhile: Deed | None) -> None:
        number, ledger = self.ids[-1 - pick % len(self.ids)], self.ledgers[0]
        known = self.book.rows.get(number)
        try:
            with self._interrupted(ledger, meanwhile, known.kind if known else FILL.name):
                got = ledger.retry(number)
        except InvalidInput:
            assert known is None or self.book.running(known.kind, known.key)
            return
        assert known is not None
        assert self.book.running(known.kind, known.key) is None
        if waiting := self.book.waiting(known.kind, known.key):
            assert got.id == waiting.id
            self.book.waits(waiting, "queued", "retried", self.clock(), not_before=self.clock(), dispatches=0)
            return
        said = self.book.standing(known.kind, known.key)
        last = known if known in said or not said else said[-1]
        self._born(Row(got.id, last.kind, last.key, last.fingerprint, last.once, self.clock()))
        assert got.parent_id == last.id

    @precondition(lambda self: len(self.book.rows) > 5)
    @rule(older=st.sampled_from([0, 60, 3_600]))
    def what_is_old_is_forgotten(self, older: int) -> None:
        moment = self.clock() - timedelta(seconds=older)
        gone = {
            row.id
            for row in self.book.rows.values()
            if row.finished_at is not None
            and row.finished_at < moment
            and (
                row not in self.book.standing(row.kind, row.key)
                or not (row.once or row.status in ("failed", "cancelled"))
            )
        }
        assert self.ledgers[1].purge(moment) == len(gone)
        for number in gone:
            del self.book.rows[number]
        self.purged |= gone

    @rule()
    def in_the_end_everything_can_be_taken(self) -> None:
        """Whatever happened: once waits and leases are over, no live row is stuck."""
        self.hands.clear()
        self._sweep(self.ledgers[0], RUNS, None)
        self.clock.now = max(self.clock(), START) + timedelta(hours=4)
        self.machine.advance(minutes=64)
        self._sweep(self.ledgers[0], RUNS, None)
        self.clock.advance(minutes=6)
        for kind in (FILL.name, FINITE.name):
            self._claim(self.ledgers[1], kind, "worker:2", 100)
        assert not [row for row in self.book.rows.values() if row.status in WAITING]

    # What another process does in the middle

    @contextmanager
    def _interrupted(self, ledger: Ledger, by: Deed | None, kind: str) -> Iterator[None]:
        """The first transaction inside, which only looks, ends only after the other ledger did something."""
        struck: list[str] = []

        def strike(_connection: object) -> None:
            if by is not None and not struck:
                struck.append(by[0])
                self._deeds(kind)[by[0]](by[1])

        event.listen(ledger.engine, "commit", strike)
        try:
            yield
        finally:
            event.remove(ledger.engine, "commit", strike)

    def _deeds(self, kind: str) -> dict[str, Callable[[int], None]]:
        other = self.ledgers[1]

        def answer(n: int) -> None:
            live = [ticket for ticket in self.tickets if self.book.held_under(ticket)]
            if live:
                self._answer(other, live[n % len(live)], (Ending("complete"), DOWN)[n % 2])

        def beat(n: int) -> None:
            if self.hands:
                self._check(self.hands[n % len(self.hands)])

        return {
            "answer": answer,
            "beat": beat,
            "cancel": lambda n: self._cancel(other, n),
            "claim": lambda _: self._claim(other, kind, "worker:2", 3),
            "dispatch": lambda _: self._dispatch(other, kind, 3, False, "oldest", set(), None),
            "sweep": lambda _: self._sweep(other, RUNS, None),
            "wish": lambda n: self._enqueue(other, [WorkRequest(kind, "ab"[n % 2], f"f{n % 4}")]),
        }

    def _born(self, row: Row) -> None:
        assert row.id not in self.ids, "an id is never given twice"
        self.book.born(row)
        self.ids.append(row.id)

    # What must hold

    @invariant()
    def the_ledger_keeps_its_promises(self) -> None:
        now = {row.id: row for row in self.ledgers[0].find(limit=None)}
        stories = defaultdict(list)
        with self.ledgers[0].engine.connect() as connection:
            told = select(work_event.c.work_id, work_event.c.event, work_event.c.status, work_event.c.attempt)
            for number, *rest in connection.execute(told.order_by(work_event.c.id)):
                stories[number].append(tuple(rest))

        # Of every database, whatever the model thinks.
        for status in ({"running"}, WAITING):
            places = [(row.kind, row.key) for row in now.values() if row.status in status]
            assert len(places) == len(set(places)), f"two {status} rows of one key"
            unfinished = [r for r in now.values() if r.status in status and r.finished_at is None]
            assert self.ledgers[0].find(status=status, limit=None) == unfinished
        assert self.before.keys() - now.keys() <= self.purged, "a row is lost"
        for row in now.values():
            assert stories[row.id][-1][1:] == (row.status, row.attempts), "a transition nobody was told of"
            assert (row.lease_until is not None) == (row.status == "running")
            assert (row.finished_at is not None) == (row.status in FINISHED)
            if old := self.before.get(row.id):
                assert old.status not in FINISHED or row == old, "what is over was changed"
                assert row.fence >= old.fence
                assert (
                    row.fence > old.fence
                    or row.status == old.status
                    or "running"
                    not in (
                        row.status,
                        old.status,
                    )
                ), "taken or given back under an old fence"
                released = stories[row.id][-1][0] == "released"
                assert row.attempts >= old.attempts - released
                assert row.fence > old.fence or row.run_id == old.run_id, "a new owner under an old fence"
        self.before = now

        # And it is exactly what the model says.
        assert now.keys() == self.book.rows.keys()
        pairs = [(row, self.book.rows[row.id]) for row in now.values()]
        different = [
            f"{name} of {row.key}, work {row.id}, is {getattr(row, name)} and not {getattr(belief, name)}"
            for row, belief in pairs
            for name in BELIEFS
            if getattr(row, name) != getattr(belief, name)
        ]
        assert not different
        assert dict(stories) == {i: row.story for i, row in self.book.rows.items()}


@pytest.fixture
def model(open_ledger: Callable[[], Ledger], clock: Hands, machine: Hands) -> type[LedgerModel]:
    """The machine on a database of each sort. It is emptied before each example."""
    first, second = open_ledger(), open_ledger()
    first.migrate()
    assert first.find() == second.find() == [], "both have looked at the schema already"
    records = {"ledgers": (first, second), "clock": clock, "machine": machine}
    return type("LedgerModel", (LedgerModel,), records)


@pytest.mark.chaos
def test_whatever_happens_the_ledger_does_what_its_rules_say(model: type[LedgerModel]) -> None:
    run_state_machine_as_test(
        model,
        settings=settings(
            max_examples=EXAMPLES[model.ledgers[0].engine.dialect.name],
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=False,
            print_blob=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
