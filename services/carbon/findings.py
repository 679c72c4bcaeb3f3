"""The findings about carbon: what is unhealthy in its tables, uploads, feeds and drop folder."""

from __future__ import annotations

from pathlib import Path

from domain.carbon import health
from domain.carbon.jobs import ALL_KINDS
from domain.shared.clock import machine_clock
from domain.shared.health import Finding
from resources.ledger.attention import attention
from services.carbon.drop_folder import DropFolder
from services.carbon.reindex import not_indexed
from services.carbon.service import CarbonService, freshness_of


def findings(carbon: CarbonService, drop: Path) -> list[Finding]:
    """The worst first."""
    work = attention(carbon.ledger.engine, tuple(kind.name for kind in ALL_KINDS))
    seen = carbon.observe()
    pulled_from = {freshness_of(origin) for origin in carbon.feeds}
    ignored = DropFolder(drop).strays()
    found = health.findings(
        carbon.plan_of(seen),
        work,
        carbon.clock(),
        machine_clock(),
        [one for one in carbon.ledger.freshness.all("carbon") if one.source in pulled_from],
        seen.feed_reads,
    )
    found += [health.strays(ignored)] if ignored else []
    missing = len(not_indexed(carbon.staging, carbon.store))
    found += [health.not_indexed_uploads(missing)] if missing else []
    return sorted(found, key=lambda f: f.rank)
