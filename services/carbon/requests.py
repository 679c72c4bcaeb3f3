"""What a person requests though no plan wants it: modules calculated anew."""

from __future__ import annotations

from collections.abc import Iterable

from domain.carbon.jobs import ASKED, MODULE_RECALCULATION, PRIORITY, RECALCULATION
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS
from domain.shared.work import WAITING, Work, WorkRequest
from resources.ledger.model import REQUESTED
from services.carbon.service import CarbonService

AT_ONCE = 100
"""Modules whose types one pass requests."""


def request_modules(carbon: CarbonService, modules: Iterable[str], year: int) -> list[Work]:
    """Request that these modules are calculated anew, whatever the plan says of them."""
    carbon.refuse_locked([year])
    names = [carbon.catalogue.module(module).name for module in modules]
    report = carbon.ledger.enqueue(
        [
            WorkRequest(
                kind=MODULE_RECALCULATION,
                key=f"{ASKED}:{name}|{year}",
                fingerprint=carbon.clock().isoformat(),
                reason_code=REQUESTED,
                priority=PRIORITY[MODULE_RECALCULATION],
            )
            for name in names
        ]
    )
    return [*report.created, *report.updated, *report.absorbed]


def request_types(carbon: CarbonService) -> None:
    """Request each type of a requested module that has entries. A pass that dies here leaves it to the next
    one, which requests the same."""
    if not carbon.ledger.find(MODULE_RECALCULATION, status=WAITING, limit=1):
        return  # reading costs no write lock
    filled = set(carbon.lake.partitions(DATA_ENTRIES.name))
    for row in carbon.ledger.claim(MODULE_RECALCULATION, holder="worker:reconcile", limit=AT_ONCE):
        name, year = row.partition.split("|")
        known = [t.name for m in carbon.catalogue.modules if m.name == name for t in m.types]
        carbon.ledger.enqueue(
            [
                WorkRequest(
                    kind=RECALCULATION,
                    key=f"{EMISSIONS.table}:{kind}|{year}",
                    fingerprint=f"asked for by work {row.id}",
                    reason_code=REQUESTED,
                    priority=PRIORITY[RECALCULATION],
                    parent_id=row.id,
                )
                for kind in known
                if f"{kind}|{year}" in filled
            ]
        )
        carbon.ledger.complete(row)
