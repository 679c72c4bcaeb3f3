"""The domains there are. A new one is one line in `MODULES`; its module is imported when it is first used."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from domain.shared.error import InvalidInput

if TYPE_CHECKING:
    from domain.shared.table import Table
    from domain.shared.work import Kind
    from orchestration.domain import Domain
    from orchestration.settings import Settings

MODULES: dict[str, str] = {
    "market": "orchestration.domains.market",
    "carbon": "orchestration.domains.carbon",
    "references": "orchestration.domains.references",
}
"""By name, the module whose `DOMAIN` it is; in the order in which people see them."""


def find_domain(name: str) -> Domain:
    if name not in MODULES:
        raise InvalidInput(f"there is no domain {name!r}", remedy=f"one of {', '.join(MODULES)}")
    domain: Domain = import_module(MODULES[name]).DOMAIN
    return domain


def enabled(settings: Settings) -> Iterator[Domain]:
    return (find_domain(name) for name in settings.domains)


def require_domain(settings: Settings, name: str) -> Domain:
    """The domain, if the settings enable it."""
    domain = find_domain(name)
    if name not in settings.domains:
        raise InvalidInput(
            f"the domain {name} is off: PERENNIAL_DOMAINS is {','.join(settings.domains)}",
            reason_code="domain_off",
            remedy=f"unset PERENNIAL_DOMAINS, or add {name} to it",
        )
    return domain


def tables(settings: Settings) -> tuple[Table, ...]:
    return tuple(table for domain in enabled(settings) for table in domain.tables())


def table_name(settings: Settings, given: str) -> str:
    """The name of a table, given with its namespace or without, or as its asset key."""
    given = given.replace("/", ".")
    known = [table.name for table in tables(settings)]
    found = [name for name in known if given in (name, name.partition(".")[2])]
    if len(found) == 1:
        return found[0]
    near = difflib.get_close_matches(given, [*known, *(n.partition(".")[2] for n in known)], n=1, cutoff=0.5)
    raise InvalidInput(
        f"there is no table {given}" if not found else f"{given} is a table of {len(found)} domains",
        remedy=f"did you mean {near[0]}? One of {', '.join(known)}" if near else f"one of {', '.join(known)}",
    )


def views(settings: Settings) -> dict[str, str]:
    """SQL views over the lake's tables, by name."""
    return {name: query for domain in enabled(settings) for name, query in domain.views().items()}


def kinds(settings: Settings) -> tuple[Kind, ...]:
    return tuple(kind for domain in enabled(settings) for kind in domain.kinds())


def pools(settings: Settings) -> dict[str, int]:
    """The limits of Dagster's concurrency pools."""
    return {pool: limit for domain in enabled(settings) for pool, limit in domain.pools().items()}
