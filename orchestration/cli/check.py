"""`perennial check`: one line per domain for cron. Imports no Dagster."""

from __future__ import annotations

from dataclasses import asdict

import typer

from domain.shared.error import InvalidInput, PerennialError
from orchestration.cli.output import Json, answer, document
from orchestration.cli.plan import DomainName
from orchestration.environments import load_settings
from orchestration.registry import find_domain


def check(domain: DomainName, json: Json = False) -> None:
    """One line for cron: exit 0 if the domain's newest data are there and its sources answer, 1 if not."""
    found = find_domain(domain)
    if found.watch is None:
        raise InvalidInput(f"{domain} has no check of its own", remedy="perennial status")
    settings = load_settings()
    try:
        seen = asdict(found.watch(found.open(settings)))  # type: ignore[call-overload]
    except PerennialError as error:
        # A watchdog that cannot observe says so in its one line; cron reads nothing else.
        line = f"ALERT {domain}: {error.message.splitlines()[0]}"
        seen = {"ok": False, "line": line, "problems": [error.message]}
    document(seen) if json else answer(seen["line"])
    raise typer.Exit(0 if seen["ok"] else 1)
