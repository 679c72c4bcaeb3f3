"""`perennial plan`: the verdict on each partition. Imports no Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.cli.output import Json, answer, document, table
from orchestration.environments import load_settings
from orchestration.registry import MODULES, find_domain

if TYPE_CHECKING:
    from orchestration.domain import Service

DomainName = Annotated[str, typer.Argument(metavar="DOMAIN", help=", ".join(MODULES))]


def show_plan(domain: DomainName, json: Json = False) -> None:
    """The verdict on each partition of a domain: its state, the reason, and whether it is due."""
    settings = load_settings()
    service: Service = find_domain(domain).open(settings)
    now, plan = service.clock(), service.plan()
    if json:
        columns = ("table", "partition", "state", "due", "reason_code", "reason")
        verdicts = [{name: getattr(v, name) for name in columns} for v in plan.verdicts]
        document({"now": now, "due": len(plan.due), "verdicts": verdicts})
        return
    rows = [(v.table, v.partition, v.state, v.reason) for v in plan.verdicts]
    table(("table", "partition", "state", "reason"), rows)
    answer(f"{len(plan.due)} of {len(rows)} are due")
