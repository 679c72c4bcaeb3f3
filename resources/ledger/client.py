"""`Ledger`: the work ledger over one database, SQLite or Postgres; each operation has its module."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from domain.shared import clock as clocks
from domain.shared.clock import Clock
from domain.shared.work import Kind
from resources.database.engine import open_engine
from resources.database.errors import driver_errors
from resources.ledger.claim_due import ClaimOperations
from resources.ledger.dispatch import DispatchOperations
from resources.ledger.enqueue import EnqueueOperations
from resources.ledger.freshness import Freshness
from resources.ledger.lease import LeaseOperations
from resources.ledger.operator_actions import OperatorActions
from resources.ledger.pipelines import Pipelines
from resources.ledger.provenance import Provenance
from resources.ledger.settle import AnswerOperations
from resources.ledger.source import SourceOperations
from resources.ledger.sweep import SweepOperations


class Ledger(
    EnqueueOperations,
    DispatchOperations,
    LeaseOperations,
    ClaimOperations,
    AnswerOperations,
    OperatorActions,
    SweepOperations,
    SourceOperations,
):
    @classmethod
    def open(
        cls,
        url: str,
        *,
        kinds: Iterable[Kind],
        clock: Clock,
        machine_clock: Clock = clocks.machine_clock,
    ) -> Ledger:
        """A ledger that has not connected yet. Its first use checks whether the schema fits."""
        return cls(open_engine(url), {kind.name: kind for kind in kinds}, clock, machine_clock)

    def with_kinds(self, kinds: Iterable[Kind]) -> Ledger:
        """The same ledger with these kinds of work, in place of its own of the same names."""
        return replace(self, kinds={**self.kinds, **{kind.name: kind for kind in kinds}})

    def migrate(self) -> None:
        """Bring the schema to this program's. Several processes may do so at once."""
        from resources.database.migrate import migrate

        migrate(self.engine)

    def reach(self) -> None:
        """Connect, whatever the schema."""
        with driver_errors(self.engine), self.engine.connect():
            pass

    def close(self) -> None:
        self.engine.dispose()

    @property
    def provenance(self) -> Provenance:
        return Provenance(self.engine, self.clock)

    @property
    def pipelines(self) -> Pipelines:
        return Pipelines(self.engine)

    @property
    def freshness(self) -> Freshness:
        return Freshness(self.engine, self.clock)
