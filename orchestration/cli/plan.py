"""`perennial plan`: the verdict on each partition. Imports no Dagster."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from domain.shared.error import PerennialError
from orchestration.cli.output import Json, answer, document, table
from orchestration.dates import DAY
from orchestration.environments import load_settings
from orchestration.registry import MODULES, enabled, find_domain

if TYPE_CHECKING:
    from domain.shared.verdict import Verdict
    from orchestration.domain import Domain, Service

DomainName = Annotated[
    str | None, typer.Argument(metavar="[DOMAIN]", help=f"{', '.join(MODULES)}; all if none is named.")
]
_PERIOD = re.compile(r"(?:^|\|)(\d{4})(-\d\d-\d\d)?(?:$|\|)")


def show_plan(
    domain: DomainName = None,
    first: Annotated[
        date | None, typer.Option("--from", **DAY, help="Only days and years from here.")
    ] = None,
    last: Annotated[date | None, typer.Option("--to", **DAY, help="Only days and years up to here.")] = None,
    due: Annotated[bool, typer.Option("--due", help="Only what is due.")] = False,
    json: Json = False,
) -> None:
    """The verdict on each partition: its state, the reason, and whether it is due."""
    from orchestration.health import is_fresh, not_started

    settings = load_settings()
    domains = [find_domain(domain)] if domain else list(enabled(settings))
    span = str(first or ""), str(last or "9999")
    shown: list[tuple[Domain, Verdict]] = []
    now = None
    for each in domains:
        try:
            service: Service = each.open(settings)
            plan = service.plan()
        except PerennialError as error:
            if error.reason_code != "ledger_schema" or not is_fresh(settings):
                raise
            answer(not_started(settings))
            return
        now = service.clock()
        verdicts = plan.due if due else plan.verdicts
        dated = first is not None or last is not None
        shown += [(each, v) for v in verdicts if not dated or _is_within(v.partition, span)]
    count = sum(verdict.due for _, verdict in shown)
    if json:
        columns = ("table", "partition", "state", "due", "reason_code", "reason")
        rows = [{"domain": of.name, **{c: getattr(v, c) for c in columns}} for of, v in shown]
        document({"now": now, "due": count, "verdicts": rows})
        return
    table(
        ("table", "partition", "state", "reason"),
        [
            (v.table if domain else f"{of.namespace}.{v.table}", v.partition, v.state, v.reason)
            for of, v in shown
        ],
    )
    answer(f"{count} of {len(shown)} are due")


def _is_within(partition: str, span: tuple[str, str]) -> bool:
    """Return whether a day, or any day of a year, is in the span. What has no time is in none."""
    period = _PERIOD.search(partition)
    if period is None:
        return False
    year, day = period.groups(default="")
    return span[0] <= f"{year}{day or '-12-31'}" and f"{year}{day or '-01-01'}" <= span[1]
