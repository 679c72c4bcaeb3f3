"""What the toy does, in plain Python, and how it is opened."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from domain.shared.clock import Clock
from domain.shared.state import PartitionState
from domain.shared.table import ALL
from domain.shared.verdict import Plan
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from services.materialize import Materialization
from services.partitions import Attempt, Built, Notify, one_at_a_time, state_of
from services.reconcile import Reconciler
from services.settings import StorageSettings, setting
from services.storage import open_lake, open_ledger
from tests.toy.rules import GREET, GREETINGS, KINDS, LOUD, judge


class ToySettings(StorageSettings):
    toy_greeting: str = setting("hello", example="good morning")
    """What it writes."""


@dataclass
class ToyService:
    lake: Lake
    ledger: Ledger
    greeting: str

    def state(self) -> PartitionState:
        records = self.ledger.provenance.records([GREETINGS.name])
        return state_of(self.lake.version(GREETINGS.name, ALL), records.get((GREETINGS.name, ALL)))

    @property
    def clock(self) -> Clock:
        return self.ledger.clock

    def plan(self) -> Plan:
        return Plan((judge(self.state(), self.greeting),))


@dataclass
class ToyReconciler(Reconciler):
    toy: ToyService
    name: str = "toy"
    kinds: tuple[str, ...] = (GREET,)

    @property
    def ledger(self) -> Ledger:
        return self.toy.ledger

    def observe(self) -> PartitionState:
        return self.toy.state()

    def plan_of(self, seen: PartitionState, refused: Collection[str]) -> Plan:  # noqa: ARG002
        return Plan((judge(seen, self.toy.greeting),))


def open_service(settings: ToySettings, *, write: bool = False) -> ToyService:
    ledger = open_ledger(settings, KINDS, write=write)
    return ToyService(open_lake(settings, [GREETINGS], LOUD), ledger, settings.toy_greeting)


def write_greetings(toy: ToyService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    rows = pa.table({"name": ["world"], "greeting": [toy.greeting]}, schema=GREETINGS.schema)
    writing = Materialization(toy.lake, toy.ledger, toy.ledger.provenance, GREET, [GREETINGS], this, report)
    inputs = {"greeting": toy.greeting}
    writing.run(
        partitions,
        lambda requests: one_at_a_time(
            requests, lambda request: Built(request.partition, {GREETINGS.name: rows}, inputs=inputs)
        ),
    )
