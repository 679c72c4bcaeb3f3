"""`perennial doctor`: everything that has to be right before work can be done, checked part by part."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.shared.error import PerennialError
from orchestration import registry
from orchestration.domain import Domain
from orchestration.library_errors import typed_error
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings

Check = Callable[[Settings], str | None]
"""Returns what was found, None if the part is not used here, or raises what is wrong."""
SPACE = 1 << 20
"""Bytes that a folder must take. With less not even the databases of an empty home fit."""


@dataclass(frozen=True)
class Examined:
    part: str
    ok: bool
    result: str


def examine(settings: Settings) -> Iterator[Examined]:
    """Examine every part, also after one failed, so that a person can repair all of them at once."""
    domains = ", ".join(settings.domains)
    yield Examined("settings", True, f"{settings.env}, keeps {domains}, home {settings.home}")
    checks: dict[str, Check] = {
        "folders": _folders,
        "ledger": _ledger,
        "lake": _lake,
        "dagster": _dagster,
    }
    for domain in registry.enabled(settings):
        checks |= {part: _of_domain(domain, check) for part, check in domain.checks().items()}
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


def _of_domain(domain: Domain, check: Callable[[Any], str | None]) -> Check:
    return lambda settings: check(domain.open(settings))


def _folders(settings: Settings) -> str:
    folders = {"PERENNIAL_HOME": settings.home}
    if settings.warehouse.startswith("file://"):
        folders["PERENNIAL_WAREHOUSE"] = Path(settings.warehouse.removeprefix("file://"))
    for setting, folder in folders.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(SPACE))
                file.flush()
        except OSError as error:
            raise PerennialError(
                f"{setting} cannot be written: {folder}: {error.strerror}",
                remedy=f"free disk space and make {folder} writable, or set {setting} to another folder",
            ) from error
    return "writable"


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
