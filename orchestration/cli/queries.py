"""Commands that only read: status, plan, check, sql. None of them imports Dagster."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.shared.error import InvalidInput, PerennialError
from domain.shared.health import summary
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.domain import constant
from orchestration.environments import load_settings
from orchestration.registry import MODULES, enabled, find_domain
from orchestration.services import open_lake, open_ledger

if TYPE_CHECKING:
    import pyarrow as pa

    from domain.shared.health import Finding
    from orchestration.domain import Service
    from orchestration.settings import Settings

LEDGER_TABLES = {
    f"ops.{name}": constant(f"resources.ledger.schema:{name}")
    for name in ("work", "work_event", "partition_record", "pipeline_member")
}
"""The ledger's tables that SQL sees, by name."""
DomainName = Annotated[str, typer.Argument(metavar="DOMAIN", help=", ".join(MODULES))]


def status(json: Json = False) -> None:
    """Every unhealthy thing: what, why, since when, what happens next, what a person can do.

    Exit code 1 if a person has to do something.
    """
    from orchestration.health import platform_findings

    settings = load_settings()
    found = platform_findings(settings)
    broken = any(f.health in ("broken", "stale") for f in found)
    if json:
        document(
            {
                "healthy": not found,
                "needs_a_person": broken,
                "summary": summary(found),
                "checked_at": settings.business_clock()(),
                "findings": [f.as_json() for f in found],
            }
        )
    else:
        if found:
            table(FINDING, [_row(f) for f in found])
        answer(summary(found))
    raise typer.Exit(1 if broken else 0)


FINDING = (
    "health",
    "domain",
    "subject",
    "reason",
    "since (UTC)",
    "next attempt (UTC)",
    "what a person can do",
)


def _row(f: Finding) -> tuple[Any, ...]:
    reason = f"{f.reason_code}: {f.reason.splitlines()[0]}"
    return f.health, f.domain, f.subject, reason, f.since, f.next_attempt, f.action


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


def _ledger_tables(settings: Settings, query: str) -> dict[str, pa.Table]:
    """Return the ledger's tables that the query names; opening the ledger costs as much as a query."""
    tables = dict(LEDGER_TABLES)
    for domain in enabled(settings):
        tables |= domain.ledger_tables
    named = [name for name in tables if re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE)]
    if not named:
        return {}
    from resources.database.arrow import read_arrow

    engine = open_ledger(settings).engine
    return {name: read_arrow(engine, tables[name]()) for name in named}


def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="One reading statement. SHOW ALL TABLES lists the lake's; the ledger has "
            "ops.work, ops.work_event, ops.partition_record and the tables of the domains."
        ),
    ],
    as_of: Annotated[
        datetime | None,
        typer.Option("--as-of", help="Read the lake as it was then (UTC)."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows shown in a table.")] = 100,
    json: Json = False,
) -> None:
    """Query the tables of the lake and of the ledger in SQL."""
    settings = load_settings()
    moment = as_of.replace(tzinfo=UTC) if as_of is not None and as_of.tzinfo is None else as_of
    result = open_lake(settings).sql(query, as_of=moment, extra=_ledger_tables(settings, query))
    if json:
        document(result.to_pylist())
    elif csv:
        from pyarrow.csv import write_csv

        write_csv(result, sys.stdout.buffer)
    else:
        first = result.slice(0, limit).to_pylist()
        table(result.column_names, [list(row.values()) for row in first], exact=True)
        if result.num_rows > limit:
            say(f"{limit} of {result.num_rows:,} rows; --limit, --csv or --json show more")
