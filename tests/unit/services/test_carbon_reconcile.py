"""A reconcile pass of carbon over a real ledger: what it enqueues, withdraws and dispatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.carbon.catalogue import Catalogue
from domain.carbon.jobs import KIND_OF, KINDS
from domain.carbon.observed import Observed
from domain.carbon.plan import plan
from domain.shared.verdict import Plan
from domain.shared.work import Work
from domain.shared.years import YEARS
from resources.ledger.client import Ledger
from services.carbon.reconcile import CarbonReconciler
from services.reconcile import Reconciliation, RunStart, Unfinished, reconcile
from tests.unit.domain.carbon.world import ENTRIES, MASSES, MODULES, REPORT, TYPES, VALUES, World, a_catalogue

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
PLANE, TRAIN = f"{MASSES}:plane|2025", f"{MASSES}:train|2025"
SUMS = {f"{MODULES}:travel|2025", f"{REPORT}:2025"}


@dataclass
class Desk:
    """What a pass needs of the domain: a real ledger, and a lake in memory."""

    ledger: Ledger
    world: World = field(default_factory=lambda: World.reported(2025))
    years: range = YEARS

    @property
    def catalogue(self) -> Catalogue:
        return self.world.catalogue

    def observe(self) -> Observed:
        rows = self.ledger.current(tuple(kind.name for kind in KINDS))
        self.world.statuses = {row.key: row.status for row in rows}
        return self.world.observed

    def plan_of(self, seen: Observed) -> Plan:
        return plan(self.catalogue, seen)

    # What tests ask and do

    def reconcile(self, *unfinished: str) -> Reconciliation:
        return reconcile(CarbonReconciler(self), Unfinished(frozenset(unfinished)))  # type: ignore[arg-type]

    def waiting(self) -> set[str]:
        return {row.key for row in self.ledger.find(status=["queued", "deferred"])}

    def newest(self, key: str) -> Work:
        return self.ledger.find(key_prefix=key)[0]

    def do(self, *keys: str) -> None:
        """What a run does with work that waits."""
        for key in keys:
            verdict = next(v for v in self.world.plan.verdicts if v.key == key)
            with self.ledger.lease(KIND_OF[verdict.table], [key], f"run of {key}", heartbeat=False):
                self.world.work(verdict)

    def fails(self, key: str) -> None:
        with self.ledger.lease(self.newest(key).kind, [key], f"run of {key}", heartbeat=False) as lease:
            lease.fail(key, "an implausible amount")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.db", kinds=KINDS, clock=lambda: NOW)
    ledger.migrate()
    yield Desk(ledger)
    ledger.close()


@pytest.fixture
def halfway(desk: Desk) -> Desk:
    """Factors came and two types are to be recalculated; one is."""
    desk.world.upload("factors", says={"plane": 2, "train": 2})
    desk.reconcile()
    desk.do(f"{VALUES}:2025")
    desk.reconcile()
    desk.do(PLANE)
    return desk


def test_reconcile__several_due__one_run_for_each_table_and_year(desk: Desk) -> None:
    chain = desk.world.upload("plane", 2024, 2025, says="corrected").pipeline_id
    desk.world.upload("train", says="corrected")
    starts = {start.partitions: start for start in desk.reconcile().starts}
    assert set(starts) == {("plane|2024",), ("plane|2025", "train|2025")}
    assert starts["plane|2024",].pipelines == (chain,)
    assert starts["plane|2024",].tables == (ENTRIES,)


def test_reconcile__already_dispatched__is_not_dispatched_again(desk: Desk) -> None:
    desk.world.upload("plane", says="corrected")
    [start] = desk.reconcile().starts
    assert desk.reconcile(start.dispatch_id).starts == ()


def test_reconcile__factors_uploaded__dispatches_phase_by_phase(desk: Desk) -> None:
    chain = desk.world.upload("factors", says=dict.fromkeys(TYPES, 2)).pipeline_id
    sent = []
    while starts := desk.reconcile().starts:
        sent.append({start.tables[0] for start in starts})
        desk.do(*(f"{start.tables[0]}:{p}" for start in starts for p in start.partitions))
    assert sent == [{VALUES}, {MASSES}, {MODULES, REPORT}]
    members = desk.ledger.pipelines.members([chain])[chain]
    assert len(members) == 1 + len(TYPES) + 3
    assert {row.status for row in members} == {"completed"}


def test_reconcile__leased_by_a_run__is_not_enqueued(desk: Desk) -> None:
    """Between its commit and its record the plan sees a change that nobody recorded."""
    desk.world.upload("plane", says="corrected")
    key = f"{ENTRIES}:plane|2025"
    with desk.ledger.lease("carbon.csv_ingest", [key], "run", heartbeat=False):
        desk.world.work(desk.world.verdict(ENTRIES, "plane|2025"), dies=True)
        assert desk.reconcile().plan.due
        assert desk.waiting() == set()


def test_reconcile__work_ends_during_the_pass__is_left_to_the_next(desk: Desk) -> None:
    """Records and lake are not read at one moment: the work may be observed half done."""
    desk.world.upload("plane", says="corrected")
    desk.reconcile()
    key = f"{ENTRIES}:plane|2025"
    seen_before_it_ended = desk.observe()
    observe = desk.observe

    def observe_while_a_run_ends() -> Observed:
        desk.do(key)
        desk.observe = observe  # type: ignore[method-assign]
        return seen_before_it_ended

    desk.observe = observe_while_a_run_ends  # type: ignore[method-assign]
    found = desk.reconcile()
    assert key in {v.key for v in found.plan.due}
    assert (found.starts, desk.waiting()) == ((), set())
    assert {start.tables[0] for start in desk.reconcile().starts} == {MASSES}


def test_reconcile__enqueued_during_the_pass__is_not_withdrawn(desk: Desk) -> None:
    """A file of a year that the pass has not seen; its receipt names the work."""
    seen_before_it_came = desk.observe()
    observe = desk.observe

    def observe_while_a_file_comes() -> Observed:
        desk.world.upload("plane", 2031)
        desk.ledger.enqueue([desk.world.verdict(ENTRIES, "plane|2031").request])
        desk.observe = observe  # type: ignore[method-assign]
        return seen_before_it_came

    desk.observe = observe_while_a_file_comes  # type: ignore[method-assign]
    desk.reconcile()
    assert desk.waiting() == {f"{ENTRIES}:plane|2031"}


def test_reconcile__last_recalculation_done__enqueues_sums(halfway: Desk) -> None:
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}
    halfway.do(TRAIN)
    halfway.reconcile()
    assert halfway.waiting() == SUMS


@pytest.mark.parametrize("cancelled", [False, True])
def test_reconcile__recalculation_failed_or_cancelled__enqueues_sums(halfway: Desk, cancelled: bool) -> None:
    if cancelled:
        halfway.ledger.cancel(halfway.newest(TRAIN).id)
    else:
        halfway.fails(TRAIN)
    halfway.reconcile()
    assert halfway.waiting() == SUMS


def test_reconcile__failed_work_due_for_another_reason__sums_wait(halfway: Desk) -> None:
    halfway.fails(TRAIN)
    halfway.world.upload("factors", says={"train": 3})
    halfway.reconcile()
    halfway.do(f"{VALUES}:2025")
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}


def test_reconcile__more_to_recalculate__withdraws_sums(halfway: Desk) -> None:
    halfway.do(TRAIN)
    halfway.reconcile()
    halfway.world.upload("power", says="corrected")
    halfway.reconcile()
    assert halfway.waiting() == {f"{ENTRIES}:power|2025"}
    assert halfway.newest(f"{REPORT}:2025").reason_code == "superseded"
    halfway.do(f"{ENTRIES}:power|2025")
    halfway.reconcile()
    halfway.do(f"{MASSES}:power|2025")
    halfway.reconcile()
    assert halfway.waiting() == {*SUMS, f"{MODULES}:buildings|2025"}


def test_reconcile__sums_dispatched__are_not_withdrawn(halfway: Desk) -> None:
    halfway.do(TRAIN)
    on_their_way = [start.dispatch_id for start in halfway.reconcile().starts]
    halfway.world.upload("power", says="corrected")
    halfway.reconcile(*on_their_way)
    assert halfway.waiting() >= SUMS


def test_reconcile__year_locked__withdraws_its_work_until_it_is_unlocked(halfway: Desk) -> None:
    halfway.reconcile()
    halfway.world.locked[2025] = "published"
    assert halfway.reconcile().starts == ()
    assert halfway.waiting() == set()
    halfway.world.locked.clear()
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}


def test_reconcile__starts_while_it_is_withdrawn__goes_on(
    halfway: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    halfway.reconcile()
    halfway.world.locked[2025] = "published"
    [waiting] = halfway.ledger.find(key_prefix=TRAIN, status="queued")
    held = halfway.ledger.lease(waiting.kind, [TRAIN], "click", heartbeat=False)
    withdraw = CarbonReconciler.withdraw

    def after_a_click(*arguments: Any) -> None:
        held.__enter__()
        withdraw(*arguments)

    monkeypatch.setattr(CarbonReconciler, "withdraw", after_a_click)
    halfway.reconcile()
    held.check()
    held.__exit__(None, None, None)
    assert halfway.newest(TRAIN).status == "completed"


def test_reconcile__type_removed__withdraws_its_work(halfway: Desk) -> None:
    halfway.reconcile()
    halfway.world.catalogue = a_catalogue(lost=frozenset({"train"}))
    halfway.reconcile()
    assert halfway.waiting() == {f"{MODULES}:buildings|2025", *SUMS}


def test_reconcile__entries_corrupt__withdraws_their_calculation(halfway: Desk) -> None:
    halfway.reconcile()
    halfway.world.corrupt(ENTRIES, "train|2025")
    halfway.reconcile()
    assert halfway.waiting() == {f"{ENTRIES}:train|2025"}
    halfway.do(f"{ENTRIES}:train|2025")
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}


def test_reconcile__retried_by_a_person_and_deferred__is_not_withdrawn(halfway: Desk) -> None:
    halfway.fails(TRAIN)
    halfway.world.locked[2025] = "published"
    halfway.reconcile()
    again = halfway.ledger.retry(halfway.newest(TRAIN).id)
    with halfway.ledger.lease(again.kind, [TRAIN], "a run", heartbeat=False) as lease:
        lease.defer(TRAIN, "the lake is busy", reason_code="lake_busy")
    halfway.reconcile()
    assert (halfway.newest(TRAIN).status, halfway.newest(TRAIN).reason_code) == ("deferred", "lake_busy")


@pytest.mark.parametrize(
    ("partitions", "corners"),
    [
        (("2025",), ("2025", "2025")),
        (("2023", "2025"), ("2023", "2025")),
        (("plane|2025",), ("plane|2025", "plane|2025")),
        (("power|2025", "plane|2025", "train|2025"), ("plane|2025", "train|2025")),
        (("train|2024", "plane|2025"), ("plane|2024", "train|2025")),
    ],
)
def test_span__of_partitions__is_the_smallest_range_that_holds_them(
    partitions: tuple[str, ...], corners: tuple[str, str]
) -> None:
    assert RunStart("id", "toy", ("any",), partitions, 0, "missing: 1").span == corners
