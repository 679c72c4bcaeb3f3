"""The ledger compared with a plain reference: any order of requests, runs, workers, crashes, people and time.

Two ledgers use one database, as two processes would. An operation that reads before it writes may be
interrupted in between by the other one. After each step the database must be what the reference expects,
and must keep the promises that do not depend on it.

A failure prints its steps, and a blob: put `@reproduce_failure(...)` on `LedgerModel` to replay it, or run
with the `--hypothesis-seed` it names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
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
from domain.shared.work import Work, WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.dispatch import Order
from resources.ledger.lease import Lease
from resources.ledger.model import LeasedElsewhere, LeaseLost
from resources.ledger.schema import work, work_event
from tests.integration.conftest import FILL, FINITE, START, SettableClock
from tests.integration.resources.ledger.reference import (
    EXPECTED,
    FINISHED,
    LEASE,
    RETRY_IN,
    WAITING,
    WORKERS,
    Ending,
    Reference,
    Row,
)

Deed = tuple[str, int]
"""What the other ledger does in the middle, and to which one of what it may choose from."""
EXAMPLES = {"sqlite": (10, 80), "postgresql": (3, 25)}
"""In short, and when it explores."""
RUNS = ("run 1", "run 2", "run 3")

KINDS = st.sampled_from([FILL.name, FINITE.name])
KEYS = st.sampled_from(["a", "a", "b", "b", "c"])
REQUESTS = st.builds(
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

WELL = Ending("complete")
DOWN = Ending("defer", TransientResourceError("down"))
BUG = Ending("defer", ZeroDivisionError("oops"))
HOPELESS = Ending("fail", PermanentRunnerError("no"))
ENDINGS = st.sampled_from(
    [
        WELL,
        WELL,
        Ending("skip"),
        DOWN,
        Ending("defer", TransientResourceError("slow down", retry_after=timedelta(seconds=42))),
        Ending("defer", TransientResourceError("half a day"), after=timedelta(minutes=30)),
        Ending("defer", after=timedelta(seconds=2)),
        BUG,
        HOPELESS,
        Ending("release"),
    ]
)


@dataclass
class Run:
    """A run with an open lease, and the answers it gave so far."""

    lease: Lease
    run: str
    final: bool
    tickets: Mapping[str, Work]
    busy: set[str]
    answers: dict[str, Ending] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


class LedgerModel(RuleBasedStateMachine):
    ledgers: ClassVar[tuple[Ledger, Ledger]]
    clock: ClassVar[SettableClock]
    machine: ClassVar[SettableClock]

    def __init__(self) -> None:
        super().__init__()
        self.clock.now = self.machine.now = START
        with self.ledgers[0].engine.begin() as connection:
            connection.execute(delete(work_event))
            connection.execute(delete(work))
        self.expected = Reference(self.clock)
        self.runs: list[Run] = []
        self.tickets: list[Work] = []
        self.dispatches: list[str] = []
        self.ids = [0]
        """Every id ever given, and one that never was."""
        self.before: dict[int, Work] = {}

    @initialize(items=st.lists(REQUESTS, min_size=1, max_size=6))
    def first_requests(self, items: list[WorkRequest]) -> None:
        self.enqueue(0, items, twice=False)

    @rule(
        business=st.sampled_from([0, 1, 30, 61, 130, 3_600]),
        machine=st.sampled_from([0, 1, 30, 60, 61]),
    )
    def time_passes(self, business: int, machine: int) -> None:
        self.clock.advance(seconds=business)
        self.machine.advance(seconds=machine)

    # Requests and their dispatch

    @rule(ledger=st.integers(0, 1), items=st.lists(REQUESTS, min_size=1, max_size=3), twice=st.booleans())
    def enqueue(self, ledger: int, items: list[WorkRequest], twice: bool) -> None:
        now = self.clock()
        report = self.ledgers[ledger].enqueue(items)
        answers = {
            (row.kind, row.key): (decision, row)
            for decision in ("created", "updated", "absorbed", "refused")
            for row in getattr(report, decision)
        }
        wanted = {(item.kind, item.key): item for item in items}
        assert answers.keys() == wanted.keys(), "each key has one answer"
        for name, item in wanted.items():
            decision, row = answers[name]
            waiting, new = self.expected.waiting(*name), self.expected.requested(item, now)
            if new:
                assert decision == "created"
                new.id = row.id
                self._create(new)
            elif waiting and decision == "updated":
                self.expected.requested_again(waiting, item, now)
            elif waiting:
                assert (decision, row.id) == ("absorbed", waiting.id)
            else:
                last = self.expected.running(*name) or self.expected.decided(item)
                assert last is not None
                hopeless = last.status in ("failed", "cancelled") and not item.once
                assert (decision, row.id) == ("refused" if hopeless else "absorbed", last.id)
            if live := self.expected.waiting(*name) or self.expected.running(*name):
                assert live.fingerprint == item.fingerprint, "a live row does what was requested"
            else:
                assert item.once or decision == "refused"
        if twice:
            again = self.ledgers[1 - ledger].enqueue(items).counts
            assert again["created"] == again["updated"] == 0, "the same requests again write nothing"

    @rule(
        kind=KINDS,
        limit=st.integers(0, 3),
        grouped=st.booleans(),
        order=st.sampled_from(["oldest", "newest"]),
        busy=st.lists(PICK, max_size=2),
        meanwhile=st.none() | st.tuples(st.sampled_from(["claim", "request", "cancel", "dispatch"]), PICK),
    )
    def dispatch(
        self,
        kind: str,
        limit: int,
        grouped: bool,
        order: Order,
        busy: list[int],
        meanwhile: Deed | None,
        ledger: int = 0,
    ) -> None:
        def group(row: Work | Row) -> str:
            return "all" if grouped else str(row.id)

        busy_ids = {self.dispatches[n % len(self.dispatches)] for n in busy} if self.dispatches else set()
        now, rows, seen = self.clock(), self.expected.rows, self.expected.due(kind, self.clock())
        with self._interrupted(ledger, meanwhile, kind):
            sent = self.ledgers[ledger].dispatch(kind, limit=limit, group=group, order=order, busy=busy_ids)
        free = {i for i in seen & self.expected.due(kind, now) if rows[i].dispatch_id not in busy_ids}
        late = {i for i in free if rows[i].dispatch_id is not None and rows[i].dispatches}
        due = free - late
        names = [one.group for one in sent]
        assert len(names) == len(set(names)) <= limit
        assert {row.id for one in sent for row in one.rows} <= due, "nothing goes before its time"
        if meanwhile is None:
            groups = {group(rows[i]) for i in due}
            assert len(names) == min(limit, len(groups)), "what is due and has room goes"
            together = {i for i in due if group(rows[i]) in names}
            assert {row.id for one in sent for row in one.rows} == together
        for one in sent:
            self.dispatches.append(one.id)
            for row in one.rows:
                self.expected.dispatched(rows[row.id], one.id, now)
        for number in late:
            self.expected.unclaimed(rows[number], now)

    @rule(
        ledger=st.integers(0, 1),
        kind=KINDS,
        holder=st.sampled_from(WORKERS),
        limit=st.integers(1, 4),
        attempt=st.booleans(),
    )
    def claim(self, ledger: int, kind: str, holder: str, limit: int, attempt: bool) -> None:
        due = self.expected.due(kind, self.clock())
        rows = self.ledgers[ledger].claim(kind, holder=holder, limit=limit, attempt=attempt)
        assert {row.id for row in rows} <= due, "nothing is claimed before its time"
        assert len(rows) == min(len(due), limit), "what is due and has room is taken, whatever its tenant"
        for row in rows:
            expected = self.expected.rows[row.id]
            self.expected.claimed(expected, holder, self.machine() + LEASE, poll=not attempt)
            self.tickets.append(row)
            assert self.expected.leased_under(row)

    # Answers by id and fence, in time or late

    @precondition(lambda self: self.tickets)
    @rule(ledger=st.integers(0, 1), pick=PICK, how=ENDINGS)
    def answer(self, ledger: int, pick: int, how: Ending) -> None:
        ticket = self.tickets[-1 - pick % len(self.tickets)]
        row = self.expected.leased_under(ticket)
        with nullcontext() if row else pytest.raises(LeaseLost):
            self._write_answer(self.ledgers[ledger], ticket, how)
        if row:
            self.expected.ended(row, how)

    def _write_answer(self, to: Ledger | Lease, work: Any, how: Ending) -> None:
        """The same methods answer for a worker's row and for a key of a lease."""
        if how.verb == "skip":
            to.skip(work, "closed")
        elif how.verb == "defer":
            to.defer(work, how.error, not_before=self._when(how))
        elif how.verb == "fail":
            to.fail(work, how.error)
        else:
            getattr(to, how.verb)(work)

    def _when(self, how: Ending) -> datetime | None:
        return None if how.after is None else self.clock() + how.after

    @precondition(lambda self: self.tickets)
    @rule(pick=PICK)
    def renew(self, pick: int) -> None:
        ticket = self.tickets[-1 - pick % len(self.tickets)]
        row = self.expected.leased_under(ticket)
        assert self.ledgers[1].renew(ticket) == (row is not None)
        if row:
            row.lease_until = self.machine() + LEASE

    # Runs

    @rule(
        kind=KINDS,
        keys=st.lists(KEYS, min_size=1, max_size=2, unique=True),
        run=st.sampled_from([*RUNS, *RUNS, WORKERS[0]]),
        final=st.booleans(),
    )
    def a_run_opens_a_lease(self, kind: str, keys: list[str], run: str, final: bool) -> None:
        now = self.clock()
        retry_in = None if final else RETRY_IN
        lease = self.ledgers[0].lease(kind, keys, run, retry_in=retry_in, heartbeat=False)
        lease.__enter__()
        busy: dict[str, str | None] = {}
        done: set[str] = set()
        settled: dict[str, int] = {}
        tickets: dict[str, tuple[int, int]] = {}
        for key in keys:
            running, waiting = self.expected.running(kind, key), self.expected.waiting(kind, key)
            if running and (running.run_id != run or run in WORKERS):
                busy[key] = running.run_id
                continue
            row = running or waiting
            if row is None and (earlier := self.expected.finished_by(run, kind, key)):
                if earlier.status in ("completed", "skipped"):
                    done.add(key)
                else:
                    settled[key] = earlier.id
                continue
            deferred = row is waiting and row and row.status == "deferred" and row.not_before > now
            if deferred and row.run_id == run and run not in WORKERS:
                settled[key] = row.id
                continue
            if row is None:
                last = next(reversed(self.expected.counting(kind, key)), None)
                fingerprint, once = (last.fingerprint, last.once) if last else ("", False)
                row = Row(lease.work[key].id, kind, key, fingerprint, once, now)
                self._create(row)
            self.expected.claimed(row, run, self.machine() + LEASE)
            tickets[key] = row.ticket
        assert lease.busy == busy, "what another has is left to it"
        assert set(lease.done) == done, "what it has done is not done again"
        assert {key: row.id for key, row in lease.settled.items()} == settled
        assert {key: (row.id, row.fence) for key, row in lease.work.items()} == tickets
        self.runs.append(Run(lease, run, final, lease.work, set(busy)))
        self.tickets += lease.work.values()

    @precondition(lambda self: self.runs)
    @rule(pick=PICK, key=PICK, how=ENDINGS)
    def a_run_answers_for_a_key(self, pick: int, key: int, how: Ending) -> None:
        run = self.runs[-1 - pick % len(self.runs)]
        open_keys = sorted(run.tickets.keys() - run.answers.keys())
        if not open_keys:
            return
        name = open_keys[key % len(open_keys)]
        self._write_answer(run.lease, name, how)
        # The moment is fixed when the answer is given, the rest when it is written.
        run.answers[name] = Ending(how.verb, how.error, how.after and self._when(how))

    @precondition(lambda self: self.runs)
    @rule(pick=PICK)
    def a_run_checks_its_lease(self, pick: int) -> None:
        """The fence is proven and the lease is whole again; answers are written."""
        run = self.runs[-1 - pick % len(self.runs)]
        self._write_answers(run)
        for name in run.tickets.keys() - run.written - run.lost:
            if row := self.expected.leased_under(run.tickets[name]):
                row.lease_until = self.machine() + LEASE
            else:
                run.lost.add(name)
        with pytest.raises(LeaseLost) if run.lost else nullcontext():
            run.lease.check()

    @precondition(lambda self: self.runs)
    @rule(pick=PICK, how=st.sampled_from([WELL, WELL, DOWN, BUG, HOPELESS, Ending("release")]))
    def a_run_ends(self, pick: int, how: Ending) -> None:
        run = self.runs.pop(-1 - pick % len(self.runs))
        for name in run.tickets:
            rest = Ending("repeat", how.error) if how is DOWN and not run.final else how
            run.answers.setdefault(name, rest)
        self._write_answers(run)
        if how is not WELL:
            error = how.error or KeyboardInterrupt()
            run.lease.__exit__(type(error), error, None)
            return
        refusal = LeaseLost if run.lost else LeasedElsewhere if run.busy else None
        with pytest.raises(refusal) if refusal else nullcontext():
            run.lease.__exit__(None, None, None)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK)
    def a_run_vanishes(self, pick: int) -> None:
        """Killed: it answers no more. The sweep finds its work."""
        self.runs.pop(-1 - pick % len(self.runs))

    def _write_answers(self, run: Run) -> None:
        now = self.clock()
        for name, how in run.answers.items():
            if name in run.written or name in run.lost:
                continue
            if row := self.expected.leased_under(run.tickets[name]):
                moment = how.after if isinstance(how.after, datetime) else None
                self.expected.ended(row, Ending(how.verb, how.error, moment and moment - now))
                run.written.add(name)
            else:
                run.lost.add(name)

    # The sweep, and people

    @rule(
        finished=st.sets(st.sampled_from([*RUNS, WORKERS[0]])),
        meanwhile=st.none()
        | st.tuples(st.sampled_from(["answer", "beat", "request", "cancel", "sweep"]), PICK),
    )
    def sweep(self, finished: set[str], meanwhile: Deed | None, ledger: int = 0) -> None:
        seen = self.expected.orphans(finished, self.machine())
        with self._interrupted(ledger, meanwhile, FILL.name):
            swept = self.ledgers[ledger].sweep(finished_runs=finished)
        orphans = seen & self.expected.orphans(finished, self.machine())
        assert {row.id for row in swept} == orphans, "the dead are found, the living left alone"
        for number in sorted(orphans):
            self.expected.orphaned(self.expected.rows[number], self.machine())

    @precondition(lambda self: self.expected.rows)
    @rule(pick=PICK)
    def a_person_cancels(self, pick: int) -> None:
        number = self.ids[-1 - pick % len(self.ids)]
        row = self.expected.rows.get(number)
        refused = row is None or row.status in FINISHED - {"cancelled"}
        with pytest.raises(InvalidInput) if refused else nullcontext():
            self.ledgers[1].cancel(number)
        if row and not refused and row.status != "cancelled":
            self.expected.ends(row, "cancelled", "cancelled", self.clock())

    @rule(pick=PICK)
    def a_plan_supersedes(self, pick: int) -> None:
        waiting = self.ledgers[0].find(status=WAITING)[: pick % 3]
        assert [row.id for row in self.ledgers[1].supersede(waiting)] == sorted(row.id for row in waiting)
        for row in waiting:
            self.expected.ends(self.expected.rows[row.id], "superseded", "superseded", self.clock())

    @rule(pick=PICK)
    def a_person_hurries(self, pick: int) -> None:
        waiting = self.ledgers[0].find(status=WAITING)[: pick % 3]
        assert [row.id for row in self.ledgers[1].hurry(waiting)] == sorted(row.id for row in waiting)
        for row in waiting:
            now = self.clock()
            self.expected.waits(self.expected.rows[row.id], "queued", "hurried", not_before=now, dispatches=0)

    @rule(run=st.sampled_from(RUNS))
    def a_person_interrupts(self, run: str) -> None:
        held = [r for r in self.expected.rows.values() if (r.status, r.run_id) == ("running", run)]
        self.ledgers[1].release_run(run)
        for row in held:
            self.expected.ended(row, Ending("release"))

    @precondition(lambda self: self.expected.rows)
    @rule(
        pick=PICK,
        meanwhile=st.none() | st.tuples(st.sampled_from(["claim", "answer", "request", "cancel"]), PICK),
    )
    def a_person_retries(self, pick: int, meanwhile: Deed | None) -> None:
        number = self.ids[-1 - pick % len(self.ids)]
        known = self.expected.rows.get(number)
        try:
            with self._interrupted(0, meanwhile, known.kind if known else FILL.name):
                got = self.ledgers[0].retry(number)
        except InvalidInput:
            assert known is None or self.expected.running(known.kind, known.key)
            return
        assert known is not None
        assert self.expected.running(known.kind, known.key) is None
        now = self.clock()
        if waiting := self.expected.waiting(known.kind, known.key):
            assert got.id == waiting.id
            self.expected.waits(waiting, "queued", "retried", not_before=now, dispatches=0)
            return
        counting = self.expected.counting(known.kind, known.key)
        last = known if known in counting or not counting else counting[-1]
        self._create(Row(got.id, last.kind, last.key, last.fingerprint, last.once, now))
        assert got.parent_id == last.id

    @precondition(lambda self: len(self.expected.rows) > 5)
    @rule(older=st.sampled_from([0, 60, 3_600]))
    def purge(self, older: int) -> None:
        moment = self.clock() - timedelta(seconds=older)
        refusals = self.expected.refusals()
        gone = {
            row.id
            for row in self.expected.rows.values()
            if row.finished_at is not None and row.finished_at < moment and row not in refusals
        }
        assert self.ledgers[1].purge(moment) == len(gone)
        for number in gone:
            del self.expected.rows[number]

    @rule()
    def in_the_end_everything_can_be_claimed(self) -> None:
        """Whatever happened: once waits and leases are over, no live row is stuck."""
        self.runs.clear()
        self.machine.advance(minutes=2)
        self.sweep(set(RUNS), None)
        self.clock.now = max(self.clock(), START) + timedelta(hours=4)
        for kind in (FILL.name, FINITE.name):
            self.claim(1, kind, "worker:2", 100, attempt=True)
        assert not [row for row in self.expected.rows.values() if row.status in WAITING]

    # What another process does in the middle

    @contextmanager
    def _interrupted(self, ledger: int, by: Deed | None, kind: str) -> Iterator[None]:
        """The first transaction inside, which only reads, ends only after the other ledger did something."""
        engine, done = self.ledgers[ledger].engine, list[str]()

        def interrupt(_connection: object) -> None:
            if by is not None and not done:
                done.append(by[0])
                self._do(kind, *by)

        event.listen(engine, "commit", interrupt)
        try:
            yield
        finally:
            event.remove(engine, "commit", interrupt)

    def _do(self, kind: str, deed: str, n: int) -> None:
        if deed == "answer" and self.tickets:
            self.answer(1, n, (WELL, DOWN)[n % 2])
        elif deed == "beat" and self.runs:
            self.a_run_checks_its_lease(n)
        elif deed == "cancel":
            self.a_person_cancels(n)
        elif deed == "claim":
            self.claim(1, kind, "worker:2", 3, attempt=True)
        elif deed == "dispatch":
            self.dispatch(kind, 3, False, "oldest", [], None, ledger=1)
        elif deed == "sweep":
            self.sweep(set(RUNS), None, ledger=1)
        elif deed == "request":
            self.enqueue(1, [WorkRequest(kind, "ab"[n % 2], f"f{n % 4}")], twice=False)

    def _create(self, row: Row) -> None:
        assert row.id not in self.ids, "an id is never given twice"
        self.expected.create(row)
        self.ids.append(row.id)

    # What must hold

    @invariant()
    def the_ledger_keeps_its_promises(self) -> None:
        now = {row.id: row for row in self.ledgers[0].find(limit=None)}
        self._every_ledger_promises(now)
        self.before = now

        assert now.keys() == self.expected.rows.keys()
        different = [
            f"{name} of {row.key}, work {row.id}, is {getattr(row, name)} and not {getattr(wanted, name)}"
            for row, wanted in ((row, self.expected.rows[row.id]) for row in now.values())
            for name in EXPECTED
            if getattr(row, name) != getattr(wanted, name) and row.error_kind != "abandoned"
        ]
        assert not different
        histories = defaultdict(list)
        with self.ledgers[0].engine.connect() as connection:
            events = select(
                work_event.c.work_id, work_event.c.event, work_event.c.status, work_event.c.attempt
            )
            for number, *rest in connection.execute(events.order_by(work_event.c.id)):
                histories[number].append(tuple(rest))
        assert dict(histories) == {i: row.history for i, row in self.expected.rows.items()}

    def _every_ledger_promises(self, now: dict[int, Work]) -> None:
        """Whatever the reference expects."""
        for status in ({"running"}, WAITING):
            rows = [row for row in now.values() if row.status in status]
            assert len({(row.kind, row.key) for row in rows}) == len(rows), f"two {status} rows of one key"
            assert self.ledgers[0].find(status=status, limit=None) == rows
        for row in now.values():
            old = self.before.get(row.id, row)
            assert old.status not in FINISHED or row == old, "what is finished was changed"
            same_fence = row.fence == old.fence
            assert same_fence or row.fence > old.fence
            assert not same_fence or row.run_id == old.run_id, "a new holder under an old fence"
            moved = "running" in (row.status, old.status) and row.status != old.status
            assert not (same_fence and moved), "claimed or given back under an old fence"


@pytest.fixture
def model(
    open_ledger: Callable[[], Ledger], clock: SettableClock, machine: SettableClock
) -> type[LedgerModel]:
    """The machine on a database of each sort. It is emptied before each example."""
    first, second = open_ledger(), open_ledger()
    first.migrate()
    assert first.find() == second.find() == [], "both have checked the schema already"
    values = {"ledgers": (first, second), "clock": clock, "machine": machine}
    return type("LedgerModel", (LedgerModel,), values)


@pytest.mark.parametrize("explore", [False, pytest.param(True, marks=pytest.mark.chaos)])
def test_ledger__any_sequence_of_operations__does_what_the_reference_expects(
    model: type[LedgerModel], explore: bool
) -> None:
    """In short always the same sequences; `make test-chaos` explores."""
    short, long = EXAMPLES[model.ledgers[0].engine.dialect.name]
    run_state_machine_as_test(
        model,
        settings=settings(
            max_examples=long if explore else short,
            stateful_step_count=40,
            deadline=None,
            derandomize=not explore,
            print_blob=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
