"""`perennial check`: one line per domain for cron. Imports no Dagster."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from domain.shared.error import InvalidInput, PerennialError
from orchestration.cli.output import Json, answer, document
from orchestration.cli.plan import DomainName
from orchestration.environments import load_settings
from orchestration.registry import enabled, find_domain

if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.shared.watchdog import Watch
    from orchestration.domain import Domain
    from orchestration.settings import Settings


def check(domain: DomainName = None, json: Json = False) -> None:
    """One line per domain for cron: exit 0 if its newest data are there and its sources answer, 1 if not."""
    if domain is not None and find_domain(domain).watch is None:
        raise InvalidInput(f"{domain} has no check of its own", remedy="perennial status")
    settings = load_settings()
    chosen = [find_domain(domain)] if domain else list(enabled(settings))
    seen = {each.name: _watched(each, each.watch, settings) for each in chosen if each.watch}
    ok = all(one["ok"] for one in seen.values())
    if json:
        document(seen[domain] if domain else {"ok": ok, "checks": seen})
    else:
        answer("\n".join(one["line"] for one in seen.values()))
    raise typer.Exit(0 if ok else 1)


def _watched(domain: Domain, watch: Callable[[Any], Watch], settings: Settings) -> dict[str, Any]:
    """Return what the watchdog of a domain says. One that cannot observe says so in its one line: cron reads
    nothing else."""
    from orchestration.health import is_fresh, not_started

    try:
        return asdict(watch(domain.open(settings)))
    except PerennialError as error:
        fresh = error.reason_code == "ledger_schema" and is_fresh(settings)
        message = not_started(settings) if fresh else error.message
        line = f"ALERT {domain.name}: {message.splitlines()[0]}"
        return {"ok": False, "line": line, "problems": [message]}
