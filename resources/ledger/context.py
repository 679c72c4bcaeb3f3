"""What every operation of the ledger works with: a database, the kinds of work, and two clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from domain.shared import clock as clocks
from domain.shared.clock import Clock
from domain.shared.error import InvalidInput
from domain.shared.work import UNCLASSIFIED, Kind, Work


@dataclass(frozen=True)
class LedgerContext:
    """The business clock stamps rows and rules `not_before`, the machine clock rules leases."""

    engine: Engine
    kinds: Mapping[str, Kind]
    clock: Clock
    machine_clock: Clock = clocks.machine_clock

    def kind_named(self, name: str) -> Kind:
        try:
            return self.kinds[name]
        except KeyError:
            raise InvalidInput(
                f"there is no kind of work named {name!r}",
                reason_code="unknown_kind",
                remedy=f"known kinds: {', '.join(sorted(self.kinds)) or 'none'}",
            ) from None

    def policy_of(self, row: Work) -> Kind:
        """The row's kind; one that the program no longer has gets few attempts, then a person decides."""
        return self.kinds.get(row.kind) or Kind(name=row.kind, transient=UNCLASSIFIED)
