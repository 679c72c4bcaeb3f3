"""What a person requests though no plan wants it: types and modules calculated anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from domain.carbon.jobs import ASKED, KIND_OF, MODULE_RECALCULATION, PRIORITY, RECALCULATION
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, name_of, year_of
from domain.shared.error import InvalidInput
from domain.shared.work import ACTIVE, WAITING, Work, WorkRequest, split_key
from resources.ledger.model import REQUESTED
from resources.ledger.pipelines import new_pipeline_id
from services.carbon.service import CarbonService

AT_ONCE = 100
"""Modules whose types one pass requests."""
ALL = "all"
"""Stands for every module."""


@dataclass(frozen=True)
class Requested:
    """The work that a request became, and the pipeline that it belongs to."""

    pipeline_id: str
    jobs: tuple[Work, ...]
    known: bool
    """All of it was requested before and has not ended: nothing was added."""


def request_recalculation(carbon: CarbonService, year: int, names: Iterable[str] = (ALL,)) -> Requested:
    """Request that types, modules or all are calculated anew, whatever the plan says of them.

    What waits or runs already is not requested twice: its work items are returned.
    """
    carbon.refuse_outside([year])
    carbon.refuse_locked([year])
    keys = sorted({key for name in names for key in _keys(carbon, name, year)})
    pipeline, known, active = pipeline_of(carbon, keys)
    now = carbon.clock().isoformat()
    report = carbon.ledger.enqueue(
        [
            WorkRequest(
                kind=(kind := KIND_OF[split_key(key)[0]]),
                key=key,
                # A running row absorbs a request of its own fingerprint.
                fingerprint=active[key].fingerprint if key in active else now,
                reason_code=REQUESTED,
                priority=PRIORITY[kind],
                pipelines=(pipeline,),
            )
            for key in keys
        ]
    )
    rows = [*report.created, *report.updated, *report.absorbed, *report.refused]
    return Requested(pipeline, tuple(sorted(rows, key=lambda row: row.id)), known and not report.created)


def _keys(carbon: CarbonService, name: str, year: int) -> list[str]:
    """The keys of the work of a type, a module or all; of what has entries in the year."""
    filled = {name_of(p) for p in carbon.lake.partitions(DATA_ENTRIES.name) if year_of(p) == year}
    modules = {
        module.name: filled.intersection(kind.name for kind in module.types)
        for module in carbon.catalogue.modules
    }
    if name not in (ALL, *modules, *carbon.catalogue.types):
        raise InvalidInput(
            f"there is no data entry type or module {name!r}",
            reason_code="unknown_type",
            remedy=f"one of {', '.join([ALL, *modules, *sorted(carbon.catalogue.types)])}",
        )
    found = [f"{EMISSIONS.table}:{name}|{year}"] if name in filled else []
    found += [f"{ASKED}:{module}|{year}" for module, of in modules.items() if of and name in (ALL, module)]
    if not found:
        of = "" if name == ALL else f" of {name}"
        raise InvalidInput(
            f"there are no entries{of} in {year}; nothing can be calculated",
            reason_code="no_entries",
            remedy="upload them first",
        )
    return found


def pipeline_of(carbon: CarbonService, keys: list[str]) -> tuple[str, bool, dict[str, Work]]:
    """Return the newest pipeline that has all of this work already, or a new one; whether it is not new; and
    by key the work that waits or runs."""
    found = carbon.ledger.current(tuple({KIND_OF[split_key(key)[0]] for key in keys}))
    active = {row.key: row for row in found if row.status in ACTIVE and row.key in keys}
    of = carbon.ledger.pipelines.of([row.id for row in active.values()])
    members = [set(of.get(row.id, ())) for row in active.values()]
    if len(active) == len(keys) and (shared := set.intersection(*members)):
        return max(shared), True, active
    return new_pipeline_id(), False, active


def request_types(carbon: CarbonService) -> None:
    """Request each type of a requested module that has entries. A pass that dies here leaves it to the next
    one, which requests the same."""
    if not carbon.ledger.find(MODULE_RECALCULATION, status=WAITING, limit=1):
        return  # reading costs no write lock
    filled = set(carbon.lake.partitions(DATA_ENTRIES.name))
    rows = carbon.ledger.claim(MODULE_RECALCULATION, holder="worker:reconcile", limit=AT_ONCE)
    pipelines = carbon.ledger.pipelines.of([row.id for row in rows])
    for row in rows:
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
                    pipelines=pipelines.get(row.id, ()),
                )
                for kind in known
                if f"{kind}|{year}" in filled
            ]
        )
        carbon.ledger.complete(row)
