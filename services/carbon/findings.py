"""The findings about carbon: what is unhealthy in its tables, uploads, feeds and inbox."""

from __future__ import annotations

from domain.carbon import health
from domain.carbon.jobs import ALL_KINDS
from domain.carbon.observed import Observed
from domain.shared.clock import machine_clock
from domain.shared.health import Finding
from services.carbon.inbox import open_inbox
from services.carbon.reindex import not_indexed
from services.carbon.service import CarbonService, freshness_of


def find_problems(carbon: CarbonService, seen: Observed | None = None) -> list[Finding]:
    """The worst first. `seen`: what was observed just now, if anything was."""
    work = carbon.ledger.current(tuple(kind.name for kind in ALL_KINDS))
    seen = seen or carbon.observe()
    polled = {freshness_of(origin) for origin in carbon.feeds}
    found = health.findings(
        carbon.plan_of(seen),
        work,
        carbon.clock(),
        machine_clock(),
        [one for one in carbon.ledger.freshness.all("carbon") if one.source in polled],
        seen.feed_reads,
    )
    unknown = open_inbox(carbon.inbox_folder).unknown_entries()
    found += [health.unknown_inbox_entries(unknown)] if unknown else []
    missing = len(not_indexed(carbon.staging, carbon.store))
    found += [health.not_indexed_uploads(missing)] if missing else []
    return sorted(found, key=lambda f: f.rank)
