"""The doctor: everything that has to be right before work can be, asked one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from domain.shared.error import PerennialError
from orchestration import registry
from orchestration.domain import Check
from orchestration.house import house_findings
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings
from orchestration.trouble import trouble


@dataclass(frozen=True)
class Examined:
    part: str
    ok: bool
    said: str


def examine(settings: Settings) -> list[Examined]:
    """Every part, also after one failed: a person mends all of it at once."""
    parts: dict[str, Check] = {
        "folders": _folders,
        "ledger": _ledger,
        "lake": _lake,
        "dagster": _dagster,
    }
    for domain in registry.enabled(settings):
        parts |= domain.checks(settings)
    return list(_examined(settings, parts))


def _examined(settings: Settings, parts: dict[str, Check]) -> Iterator[Examined]:
    kept = ", ".join(settings.domains)
    said = f"{settings.env}, keeps {kept}, source {settings.source}, home {settings.home}"
    yield Examined("settings", True, said)
    for part, reconcile in parts.items():
        try:
            yield Examined(part, True, reconcile(settings))
        except PerennialError as error:
            yield _wrong(part, error)
        except Exception as error:
            found = trouble(error)
            if found is None:
                raise
            yield _wrong(part, found)


def _wrong(part: str, error: PerennialError) -> Examined:
    remedy = f" ({error.remedy})" if error.remedy else ""
    return Examined(part, False, f"{error.message}{remedy}")


def _folders(settings: Settings) -> str:
    wrong = list(house_findings(settings))
    if wrong:
        raise PerennialError("; ".join(f.reason for f in wrong), remedy=wrong[0].action)
    return "writable"


def _ledger(settings: Settings) -> str:
    ledger = open_ledger(settings)
    ledger.check_source(settings.source)
    counts: Counter[str] = Counter()
    for kind in ledger.counts().values():
        counts.update(kind)
    told = ", ".join(f"{number:,} {status}" for status, number in sorted(counts.items()))
    return f"schema is current; work: {told or 'none yet'}"


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
