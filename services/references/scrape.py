"""What the asset of references does: syncs its partitions, each a source, under their leases."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from domain.references.jobs import SCRAPE, scrape_key
from domain.references.tables import REFERENCES
from domain.shared.error import InvalidInput, PermanentRunnerError
from domain.shared.work import split_key
from resources.ledger.lease import Lease
from services.partitions import Attempt, Notify, PartitionReport
from services.references.missing import count_without_handoff
from services.references.recording import per_day, state_in
from services.references.requests import FULL
from services.references.service import ReferencesService
from services.references.sync import SyncOutcome, sync

WITHOUT_HANDOFF = "without_handoff"

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
    before = state_in(service, REFERENCES, source)
    work = lease.work[key]
    by = work.reason_code or "requested"
    full = bool(work.params.get(FULL))
    outcome = sync(service, source, by=by, full=full, holder=this.run_id, guard=lease.check)
    service.ledger.pipelines.add(work.id, [outcome.scrape_run_id])
    return PartitionReport(
        table=REFERENCES,
        partition=source,
        outcome="committed",  # also of what was there already: people look when a source was scraped last
        version=service.lake.version(REFERENCES.name, source),
        before=before,
        seconds=time.monotonic() - began,
        attempts=work.attempts + this.retry,
        reason=by,
        metadata=_shown(service, outcome),
    )


def _shown(service: ReferencesService, outcome: SyncOutcome) -> dict[str, object]:
    shown = outcome.as_json()
    notes = shown.pop("notes")
    if notes:
        shown["notes"] = "; ".join(notes)
    if outcome.handoff_available:
        shown[WITHOUT_HANDOFF] = _without_handoff(service, outcome.source)
    return {**shown, "references_per_day": per_day(service, REFERENCES, outcome.source)}


def _without_handoff(service: ReferencesService, source: str) -> int:
    """What the asset check says. Of a version that was handed over whole nothing needs to be counted."""
    version = str(service.lake.version(REFERENCES.name, source))
    handed = service.store.state_of(source).handed_version
    return 0 if version == handed else count_without_handoff(service, source)
