"""The health of everything: each domain's findings, and those of the house itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from domain.shared.clock import machine_clock
from domain.shared.health import Finding
from orchestration.services import open_market
from orchestration.settings import Settings
from resources.ledger.attention import attention


def platform_findings(settings: Settings) -> list[Finding]:
    from domain.market.health import findings
    from domain.market.plan import FILL, REFRESH

    market = open_market(settings)
    now = market.clock()
    seen = market.observe(now)
    gaps = market.lake.sql("SELECT count(DISTINCT trade_date) AS days FROM market.history_gaps")["days"][
        0
    ].as_py()
    found = findings(
        market.plan_of(seen, now),
        attention(market.ledger.engine, (FILL, REFRESH)),
        market.sources.all(),
        seen.calendar,
        now,
        machine_clock(),
        history_gaps=gaps,
    )
    return sorted([*house_findings(settings), *found], key=lambda f: f.rank)


def house_findings(settings: Settings) -> Iterator[Finding]:
    """Whether the folders we must write to can be written. Asked of the disk, not guessed from rights."""
    folders = {"PERENNIAL_HOME": settings.home}
    if settings.warehouse.startswith("file://"):
        folders["PERENNIAL_WAREHOUSE"] = Path(settings.warehouse.removeprefix("file://"))
    for setting, folder in folders.items():
        place = next((p for p in (folder, *folder.parents) if p.exists()), folder)
        why = _unwritable(place)
        if why:
            yield Finding(
                domain="house",
                subject=str(folder),
                health="broken",
                reason_code="read_only",
                reason=f"{setting} cannot be written: {why}",
                since=None,
                next_attempt=None,
                action=f"make {folder} writable, or set {setting} to another folder",
            )


def _unwritable(folder: Path) -> str:
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "its file system is mounted read-only"
    return "" if os.access(folder, os.W_OK | os.X_OK) else "this user has no right to write there"
