"""`perennial doctor`: everything that has to be right before work can be done, checked part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError
from domain.shared.health import in_utc
from domain.shared.platform_health import Platform, clock_finding
from domain.shared.reasons import SHARED, actions
from orchestration import registry
from orchestration.domain import Domain
from orchestration.health import is_fresh
from orchestration.library_errors import typed_error
from orchestration.platform import (
    api_address,
    folders,
    full_folders,
    is_up,
    listens,
    observe_platform,
    reference_time,
    require_space,
    serves_api,
    ui_address,
)
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings, empty_home

Check = Callable[[Settings], str | None]
"""Returns what was found, None if the part is not used here, or raises what is wrong."""
TO_BE_MADE = "not there yet: the first start makes it"


@dataclass(frozen=True)
class Examined:
    part: str
    ok: bool
    result: str


def examine(settings: Settings) -> Iterator[Examined]:
    """Examine every part, also after one failed, so that a person can repair all of them at once."""
    domains = ", ".join(settings.domains)
    yield Examined("settings", True, f"{settings.env}, keeps {domains}, home {settings.home}")
    checks: dict[str, Check] = {"folders": _folders, "ports": _ports, "clock": _clock}
    fresh = is_fresh(settings)
    if fresh:
        checks |= dict.fromkeys(("ledger", "lake", "dagster"), lambda _: TO_BE_MADE)
    else:
        checks |= {"ledger": _ledger, "lake": _lake, "daemon": _daemon, "dagster": _dagster}
    for domain in registry.enabled(settings):
        wrap = _before_start if fresh else _of_domain
        checks |= {part: wrap(domain, check) for part, check in domain.checks().items()}
    for part, check in checks.items():
        try:
            if (found := check(settings)) is not None:
                yield Examined(part, True, found)
        except Exception as error:
            known = error if isinstance(error, PerennialError) else typed_error(error)
            if known is None:
                raise
            remedy = f" ({known.remedy})" if known.remedy else ""
            yield Examined(part, False, f"{known.message}{remedy}")


def _before_start(domain: Domain, check: Callable[[Any], str | None]) -> Check:
    """Return the check made with a service of a home that is thrown away: the token and the address are those
    of these settings."""

    def examined(settings: Settings) -> str | None:
        if domain.sandbox(settings):
            return "the sandbox; it is started when it is first needed"
        with empty_home(settings) as elsewhere:
            return check(domain.open(elsewhere, write=True))

    return examined


def _of_domain(domain: Domain, check: Callable[[Any], str | None]) -> Check:
    return lambda settings: check(domain.open(settings))


def _folders(settings: Settings) -> str:
    made = []
    for setting, folder in folders(settings).items():
        there = folder
        while not there.exists():  # a folder that is still to be made is made below this one
            there = there.parent
        if there != folder:
            made.append(str(folder))
        require_space(setting, there)
    if full := next(full_folders(settings), None):
        raise PerennialError(full.reason, remedy=actions(SHARED)[full.reason_code])
    return f"writable; the first start makes {made[0]}" if made else "writable"


def _ports(settings: Settings) -> str:
    ports = [(settings.ui_host, settings.ui_port, ui_address(settings))]
    if settings.api_port:
        ports.append((settings.api_host, settings.api_port, api_address(settings)))
    if is_up(settings):
        return f"`perennial up` runs: {', '.join(f'{host}:{port}' for host, port, _ in ports)}"
    for host, port, address in ports:
        if listens(host, port):
            if address == api_address(settings) and serves_api(host, port):
                return f"`perennial api` runs at {address}; `perennial up` wants another or 0"
            raise PerennialError(
                f"another program listens at {address}", remedy=actions(SHARED)["port_in_use"]
            )
    return f"{', '.join(str(port) for _, port, _ in ports)} {'is' if len(ports) == 1 else 'are'} free"


def _clock(settings: Settings) -> str | None:
    asked = reference_time(settings)
    if asked is None:
        return None
    if wrong := clock_finding(Platform(reference=asked), machine_clock()):
        raise PerennialError(wrong.reason, remedy=wrong.action)
    return "within 5 minutes of the source's"


def _daemon(settings: Settings) -> str:
    now = machine_clock()
    seen = observe_platform(settings, ())
    if seen.daemon_runs:
        return "runs"
    if since := seen.down_since(now):
        raise PerennialError(
            f"it does not run; its last sign of life was {in_utc(since)}",
            remedy=actions(SHARED)["daemon_down"],
        )
    return "none was started here lately; commands do without"


def _ledger(settings: Settings) -> str:
    ledger = open_ledger(settings)
    counts: Counter[str] = Counter()
    for kind in ledger.counts().values():
        counts.update(kind)
    work = ", ".join(f"{number:,} {status}" for status, number in sorted(counts.items()))
    return f"schema is current; work: {work or 'none yet'}"


def _lake(settings: Settings) -> str:
    lake = open_lake(settings)
    tables = [t for t in lake.tables if lake.partitions(t)]
    return f"{len(tables)} of {len(lake.tables)} tables have data"


def _dagster(settings: Settings) -> str:
    from orchestration.instance import open_instance
    from orchestration.pools import drift

    if settings.env == "production":
        open_ledger(settings).reach()  # the same database, for which Dagster would wait long
    with open_instance(settings) as instance:
        found = drift(instance, registry.pools(settings))
    if found:
        raise PerennialError("; ".join(map(str, found)), remedy="perennial pools apply")
    return "instance opens, pools have their limits"
