"""The health of everything: the findings of each domain, and of the platform itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.shared import platform_health
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError
from domain.shared.health import Finding, in_utc, is_healthy, needs_person, summary, unobserved
from orchestration.platform import observe_platform
from orchestration.registry import enabled
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings


def not_started(settings: Settings) -> str:
    """Return the answer before the first start."""
    commands = [f"`{domain.begin}`" for domain in enabled(settings) if domain.begin]
    return f"not started yet: run {', or '.join(['`perennial up`', *commands])}"


def is_fresh(settings: Settings) -> bool:
    """Whether nothing was ever done here: there is no ledger, no data and no upload."""
    from resources.database.engine import found_version
    from resources.database.errors import driver_errors
    from resources.objects.store import store_for

    engine = open_ledger(settings).engine
    locations = {location for group in settings.groups() for location in group.locations}
    try:
        with driver_errors(engine):
            if found_version(engine) is not None:
                return False
        lake = open_lake(settings)
        held = (next(iter(store_for(location).list(location)), None) for location in locations)
        return not any(held) and not any(lake.partitions(t) for t in lake.tables)
    except (PerennialError, OSError):  # what cannot be reached may hold everything
        return False


@dataclass(frozen=True)
class Overview:
    """What was seen of everything at one moment."""

    found: list[Finding]
    at: datetime
    not_started: str = ""
    """The answer before the first start, else empty."""
    daemon_runs: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the answer of `perennial status --json` and of `GET /status`."""
        from domain.shared.finding_groups import group

        return {
            "started": not self.not_started,
            "healthy": not self.not_started and is_healthy(self.found),
            "needs_a_person": needs_person(self.found),
            "daemon_runs": self.daemon_runs,
            "summary": self.summary(),
            "checked_at": self.at,
            "groups": [g.as_json() for g in group(self.found)],
            "findings": [f.as_json() for f in self.found],
        }

    def summary(self, shown: Callable[[datetime], str] = in_utc) -> str:
        return self.not_started or summary(self.found, shown, alone=not self.daemon_runs)


def overview(settings: Settings) -> Overview:
    """Return the findings, the worst first. What cannot be observed is a finding too."""
    found: list[Finding] = []
    errors: dict[str, PerennialError] = {}
    now = settings.business_clock()()
    for domain in enabled(settings):
        try:
            found += domain.findings(domain.open(settings))
        except PerennialError as error:
            if error.reason_code == "ledger_schema" and is_fresh(settings):
                return Overview([], now, not_started(settings))
            errors[error.message] = error  # a ledger that is away is one finding, not one per domain
    found += [_unobserved(error) for error in errors.values()]
    seen = observe_platform(settings, found)
    own = platform_health.findings(seen, machine_clock())
    found = platform_health.without_killed(found, seen, now)
    found = [*own, *platform_health.with_causes(found, seen, own)]
    return Overview(sorted(found, key=lambda f: f.rank), now, daemon_runs=seen.daemon_runs)


def platform_findings(settings: Settings) -> list[Finding]:
    return overview(settings).found


def _unobserved(error: PerennialError) -> Finding:
    part = error.reason_code.partition("_")[0]
    return unobserved("platform", part if part in ("ledger", "lake") else "home", error)
