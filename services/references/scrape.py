"""What the asset of references does: syncs its partitions, each a source, under their leases."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from domain.references.jobs import SCRAPE, scrape_key
from domain.references.tables import REFERENCES
from domain.shared.error import InvalidInput, PermanentRunnerError
from domain.shared.state import PartitionState
from domain.shared.work import split_key
from resources.ledger.lease import Lease
from services.partitions import Attempt, Notify, PartitionReport
from services.references.service import ReferencesService
from services.references.sync import SyncOutcome, sync

log = logging.getLogger(__name__)


def scrape_sources(
    service: ReferencesService, partitions: Sequence[str], this: Attempt, report: Notify
) -> None:
    """Sync these sources; one that fails keeps no other from it. Of a run that was dispatched, those that it
    was dispatched for."""
    failures: list[Exception] = []
    keys = [scrape_key(source) for source in _wanted(service, partitions, this)]
    with service.ledger.lease(SCRAPE, keys, this.run_id) as lease:
        for key in lease.keys:
            try:
                report([_synced(service, lease, key, this)])
            except (PermanentRunnerError, InvalidInput) as error:
                failures.append(error)
                lease.fail(key, error)
            except Exception as error:
                log.exception("%s", key)
                failures.append(error)
                lease.defer(key, error)
            else:
                lease.complete(key)
                lease.check()
    if failures:
        raise failures[0]


def _wanted(service: ReferencesService, partitions: Sequence[str], this: Attempt) -> list[str]:
    if this.dispatch_id is None:
        return list(partitions)
    sent = {row.key for row in service.ledger.sent(this.dispatch_id)} or {v.key for v in service.plan().due}
    return [source for source in partitions if scrape_key(source) in sent]


def _synced(service: ReferencesService, lease: Lease, key: str, this: Attempt) -> PartitionReport:
    source, began = split_key(key)[1], time.monotonic()
    before = service.states(REFERENCES).get(source, PartitionState())
    work = lease.work[key]
    by = work.reason_code or "requested"
    outcome = sync(service, source, by=by, full=not before.untouched, holder=this.run_id, guard=lease.check)
    service.ledger.pipelines.add(work.id, [outcome.scrape_run_id])
    return PartitionReport(
        table=REFERENCES,
        partition=source,
        outcome="committed" if outcome.stored + outcome.changed else "kept",
        version=service.lake.version(REFERENCES.name, source),
        before=before,
        seconds=time.monotonic() - began,
        attempts=work.attempts + this.retry,
        reason=by,
        metadata=_shown(outcome),
    )


def _shown(outcome: SyncOutcome) -> dict[str, object]:
    shown = outcome.as_json()
    notes = shown.pop("notes")
    return {**shown, "notes": "; ".join(notes)} if notes else shown
