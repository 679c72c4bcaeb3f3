"""Pulled kinds in a pass and in the loop of commands, over a real ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.shared.backoff import Backoff
from domain.shared.error import TransientResourceError
from domain.shared.table import ALL
from domain.shared.verdict import Plan
from domain.shared.work import Kind, WorkRequest
from resources.ledger.client import Ledger
from services.reconcile import Pull, Reconciler, RunStart, Unfinished, reconcile
from services.run_until_idle import run_until_idle

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
POST = "mail.post"
KIND = Kind(POST, transient=Backoff(base=timedelta(minutes=1)), pulled=True)


@dataclass
class Mail(Reconciler):
    opened: Ledger
    name: str = "mail"
    namespace: str = "post"
    kinds: tuple[str, ...] = ()
    pulls: tuple[Pull, ...] = (Pull(POST, "letters"),)

    @property
    def ledger(self) -> Ledger:
        return self.opened

    def observe(self) -> None: ...

    def plan_of(self, seen: None, refused: Collection[str]) -> Plan:  # noqa: ARG002
        return Plan(())

    def post(self, *keys: str, tenant: str = "default") -> None:
        self.ledger.enqueue([WorkRequest(POST, key, key, tenant=tenant) for key in keys])

    def starts_of(self, *pulling: str) -> list[RunStart]:
        return list(reconcile(self, Unfinished(pulling=frozenset(pulling))).starts)


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[Mail]:
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.db", kinds=[KIND], clock=lambda: NOW)
    ledger.migrate()
    yield Mail(ledger)
    ledger.close()


def test_reconcile__pulled_kind_without_due_work__starts_nothing(mail: Mail):
    assert mail.starts_of() == []


def test_reconcile__pulled_kind_has_due_work__starts_one_run_and_marks_no_row(mail: Mail):
    mail.post(*(f"letters:{n}" for n in range(50)))
    before = mail.ledger.find(POST)
    [start] = mail.starts_of()
    assert (start.namespace, start.tables, start.partitions) == ("post", ("letters",), (ALL,))
    assert (start.pulls, start.reason) == (POST, "50 due")
    assert mail.ledger.find(POST) == before


def test_reconcile__unfinished_run_pulls_the_kind__starts_none(mail: Mail):
    mail.post("letters:1")
    assert mail.starts_of(POST) == []
    assert len(mail.starts_of("mail.other")) == 1


def test_reconcile__tenants_are_partitions__starts_for_those_that_have_due_work(mail: Mail):
    """A tenant that is no partition any more would fail the tick with all its runs."""
    mail.pulls = (Pull(POST, "letters", ["here", "near", "there"]),)
    for tenant in ("gone", "here", "there"):
        mail.post(f"letters:{tenant}", tenant=tenant)
    [start] = mail.starts_of()
    assert (start.partitions, start.reason) == (("here", "there"), "2 due")


@dataclass
class InProcess:
    """Runs of the loop of commands: each leases up to `batch` keys and calls `body` with each."""

    mail: Mail
    body: Callable[[str], None] = lambda _: None
    batch: int = 10
    others: list[Unfinished] = field(default_factory=list)
    """What is unfinished of others, look by look."""
    done: list[tuple[str, ...]] = field(default_factory=list)
    waited_for: list[str] = field(default_factory=list)

    def sweep(self, ledger: Ledger) -> None: ...

    def unfinished(self) -> Unfinished:
        return self.others.pop(0) if self.others else Unfinished()

    def has_ended(self, dispatch_id: str) -> bool:
        raise AssertionError(f"nothing was dispatched as {dispatch_id}")

    def alone(self) -> bool:
        return True

    def start(self, start: RunStart) -> None:
        with self.mail.ledger.lease_due(start.pulls, start.dispatch_id, self.batch, heartbeat=False) as lease:
            self.done.append(lease.keys)
            for key in lease.keys:
                try:
                    self.body(key)
                except TransientResourceError as error:
                    lease.defer(key, error)

    def report_waiting(self, keys: object) -> None:
        self.waited_for.append(str(keys))
        # Meanwhile the other process ends what it has.
        for row in self.mail.ledger.running():
            self.mail.ledger.complete(row)


def test_run_until_idle__more_due_than_a_run_leases__runs_until_none_is_left(mail: Mail):
    mail.post(*(f"letters:{n}" for n in range(25)))
    runs = InProcess(mail)
    run_until_idle(mail, runs)
    assert [len(keys) for keys in runs.done] == [10, 10, 5]
    assert mail.ledger.backlog(POST) == {}


def test_run_until_idle__work_waits_for_a_backoff__is_made_due_once(mail: Mail):
    mail.post("letters:1")

    def fails(_: str) -> None:
        raise TransientResourceError("no stamps")

    first = InProcess(mail, fails)
    run_until_idle(mail, first)
    assert len(first.done) == 1
    [row] = mail.ledger.find(POST)
    assert (row.status, row.not_before) == ("deferred", NOW + timedelta(minutes=1))
    second = InProcess(mail)
    run_until_idle(mail, second)
    assert second.done == [("letters:1",)]


def test_run_until_idle__run_leases_nothing__is_not_started_again(mail: Mail):
    """As a run that fails before it leases: the loop would never end."""
    mail.post("letters:1")
    runs = InProcess(mail, batch=0)
    run_until_idle(mail, runs)
    assert runs.done == [()]


def test_run_until_idle__another_process_has_the_work__waits_for_it(mail: Mail):
    mail.post("letters:1")
    mail.ledger.claim(POST, holder="worker:other", limit=1)
    runs = InProcess(mail, others=[Unfinished(pulling=frozenset({POST}))])
    run_until_idle(mail, runs)
    assert (runs.done, runs.waited_for) == ([], [f"['{POST}']"])


def test_lease_due__of_some_tenants__leases_theirs_alone(mail: Mail):
    for tenant in ("a", "b", "c"):
        mail.post(f"letters:{tenant}1", f"letters:{tenant}2", tenant=tenant)
    with mail.ledger.lease_due(POST, "run 1", 3, tenants=["a", "c"], heartbeat=False) as lease:
        assert set(lease.keys) | set(lease.more(5)) == {f"letters:{k}" for k in ("a1", "a2", "c1", "c2")}
    assert {tenant: one.due for tenant, one in mail.ledger.backlog(POST).items()} == {"b": 2}


def test_not_due__waiting_rows__are_those_whose_moment_has_not_come(mail: Mail):
    later = WorkRequest(POST, "letters:later", "x", not_before=NOW + timedelta(hours=1))
    mail.ledger.enqueue([later, replace(later, key="letters:now", not_before=None)])
    assert [row.key for row in mail.ledger.not_due(POST)] == ["letters:later"]
