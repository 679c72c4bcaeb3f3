"""A pass at carbon over a real ledger: what it wishes for, holds back, takes back, and sends."""

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
from resources.ledger.client import Ledger
from resources.ledger.model import Work
from services.carbon.reconcile import CarbonReconciler
from services.carbon.service import CarbonService
from services.reconcile import Reconciliation, RunStart, Unfinished, reconcile
from tests.unit.domain.carbon.world import ENTRIES, MASSES, MODULES, REPORT, TYPES, VALUES, World, a_catalogue

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
PLANE, TRAIN = f"{MASSES}:plane|2025", f"{MASSES}:train|2025"
SUMS = {f"{MODULES}:travel|2025", f"{REPORT}:2025"}


@dataclass
class Desk:
    """What a pass needs of the domain: a real ledger, beside a lake of values."""

    ledger: Ledger
    world: World = field(default_factory=lambda: World.reported(2025))

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


def test_a_desk_has_what_a_pass_needs_of_the_domain() -> None:
    assert {"ledger", "catalogue"} <= set(CarbonService.__dataclass_fields__)
    assert callable(CarbonService.observe)
    assert callable(CarbonService.plan_of)


def test_what_is_due_is_sent_in_one_run_for_each_table_and_year(desk: Desk) -> None:
    chain = desk.world.upload("plane", 2024, 2025, says="corrected").pipeline_id
    desk.world.upload("train", says="corrected")
    starts = {start.partitions: start for start in desk.reconcile().starts}
    assert set(starts) == {("plane|2024",), ("plane|2025", "train|2025")}
    assert starts["plane|2024",].pipelines == (chain,)
    assert starts["plane|2024",].tables == (ENTRIES,)


def test_what_is_on_its_way_is_not_sent_again(desk: Desk) -> None:
    desk.world.upload("plane", says="corrected")
    [start] = desk.reconcile().starts
    assert desk.reconcile(start.dispatch_id).starts == ()


def test_a_whole_chain_is_sent_phase_by_phase_and_then_nothing(desk: Desk) -> None:
    chain = desk.world.upload("factors", says=dict.fromkeys(TYPES, 2)).pipeline_id
    sent = []
    while starts := desk.reconcile().starts:
        sent.append({start.tables[0] for start in starts})
        desk.do(*(f"{start.tables[0]}:{p}" for start in starts for p in start.partitions))
    assert sent == [{VALUES}, {MASSES}, {MODULES, REPORT}]
    members = desk.ledger.pipelines.members([chain])[chain]
    assert len(members) == 1 + len(TYPES) + 3
    assert {row.status for row in members} == {"completed"}


def test_what_a_run_has_in_its_hands_is_not_wished_for(desk: Desk) -> None:
    """Between its commit and its record the plan sees a change that nobody recorded."""
    desk.world.upload("plane", says="corrected")
    key = f"{ENTRIES}:plane|2025"
    with desk.ledger.lease("carbon.csv_ingest", [key], "run", heartbeat=False):
        desk.world.work(desk.world.verdict(ENTRIES, "plane|2025"), dies=True)
        assert desk.reconcile().plan.due
        assert desk.waiting() == set()


def test_work_that_begins_or_ends_during_a_pass_is_left_to_the_next_one(desk: Desk) -> None:
    """Facts and lake are not read at one moment: what changed hands may have been seen half done."""
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


def test_what_is_wished_for_during_a_pass_is_not_taken_back(desk: Desk) -> None:
    """A file of a year that the look has not seen: whoever uploaded it was told the number of its work."""
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


def test_sums_are_wished_for_when_the_last_recalculation_is_done(halfway: Desk) -> None:
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}
    halfway.do(TRAIN)
    halfway.reconcile()
    assert halfway.waiting() == SUMS


@pytest.mark.parametrize("called_off", [False, True])
def test_sums_do_not_wait_for_what_failed_or_was_called_off(halfway: Desk, called_off: bool) -> None:
    if called_off:
        halfway.ledger.cancel(halfway.newest(TRAIN).id)
    else:
        halfway.fails(TRAIN)
    halfway.reconcile()
    assert halfway.waiting() == SUMS


def test_sums_wait_again_when_what_failed_is_wanted_for_another_reason(halfway: Desk) -> None:
    halfway.fails(TRAIN)
    halfway.world.upload("factors", says={"train": 3})
    halfway.reconcile()
    halfway.do(f"{VALUES}:2025")
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}


def test_sums_that_were_wished_for_are_taken_back_while_more_is_to_be_recalculated(halfway: Desk) -> None:
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


def test_sums_whose_run_is_on_its_way_are_let_go(halfway: Desk) -> None:
    halfway.do(TRAIN)
    on_their_way = [start.dispatch_id for start in halfway.reconcile().starts]
    halfway.world.upload("power", says="corrected")
    halfway.reconcile(*on_their_way)
    assert halfway.waiting() >= SUMS


def test_work_of_a_year_that_was_locked_is_taken_back_and_done_when_it_is_unlocked(halfway: Desk) -> None:
    halfway.reconcile()
    halfway.world.locked[2025] = "published"
    assert halfway.reconcile().starts == ()
    assert halfway.waiting() == set()
    halfway.world.locked.clear()
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}


def test_what_begins_to_run_while_it_is_taken_back_goes_on(
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


def test_work_of_a_type_that_the_catalogue_lost_is_taken_back(halfway: Desk) -> None:
    halfway.reconcile()
    halfway.world.catalogue = a_catalogue(lost=frozenset({"train"}))
    halfway.reconcile()
    assert halfway.waiting() == {f"{MODULES}:buildings|2025", *SUMS}


def test_a_calculation_whose_entries_were_hurt_is_taken_back_until_they_are_whole(halfway: Desk) -> None:
    halfway.reconcile()
    halfway.world.corrupt(ENTRIES, "train|2025")
    halfway.reconcile()
    assert halfway.waiting() == {f"{ENTRIES}:train|2025"}
    halfway.do(f"{ENTRIES}:train|2025")
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}


def test_what_a_person_asked_for_again_is_not_taken_back(halfway: Desk) -> None:
    halfway.fails(TRAIN)
    halfway.world.locked[2025] = "published"
    halfway.reconcile()
    halfway.ledger.retry(halfway.newest(TRAIN).id)
    halfway.reconcile()
    assert halfway.waiting() == {TRAIN}


def test_what_a_person_asked_for_is_not_taken_back_after_a_hiccup(halfway: Desk) -> None:
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
def test_a_run_spans_the_smallest_range_that_holds_its_partitions(
    partitions: tuple[str, ...], corners: tuple[str, str]
) -> None:
    assert RunStart("id", "toy", ("any",), partitions, 0, "missing: 1").span == corners
