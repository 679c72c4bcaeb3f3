"""Commands that only look: status, plan, check, sql. None imports Dagster, none writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.shared.error import PerennialError
from domain.shared.health import summary
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.environments import load_settings
from orchestration.services import open_carbon, open_lake, open_ledger, open_market

if TYPE_CHECKING:
    from domain.market.watchdog import Watch
    from domain.shared.health import Finding
    from orchestration.settings import Settings

LEDGER_VIEWS = (
    "market.source_freshness",
    "ops.work",
    "ops.work_event",
    "ops.partition_fact",
    "ops.pipeline_member",
    "carbon.feed_place",
    "carbon.upload",
    "carbon.year_lock",
)
"""What the ledger shows to SQL."""

plan_app = typer.Typer(no_args_is_help=True)
check_app = typer.Typer(no_args_is_help=True)


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
    elif not found:
        answer(summary(found))
    else:
        _show(found)
        answer(summary(found))
    raise typer.Exit(1 if broken else 0)


def _show(found: Sequence[Finding]) -> None:
    table(
        [
            "health",
            "domain",
            "subject",
            "reason",
            "since (UTC)",
            "next attempt (UTC)",
            "what a person can do",
        ],
        [
            (
                f.health,
                f.domain,
                f.subject,
                f"{f.reason_code}: {f.reason.splitlines()[0]}",
                f.since,
                f.next_attempt,
                f.action,
            )
            for f in found
        ],
    )


@plan_app.command("market")
def plan_market(json: Json = False) -> None:
    """Each reference, day and table of the gap window: gap or not, and why."""
    market = open_market(load_settings())
    plan = market.plan()
    _tell_plan(plan.verdicts, len(plan.due), market.clock(), ("partition", "table"), json=json)


@plan_app.command("carbon")
def plan_carbon(json: Json = False) -> None:
    """Each partition of the carbon tables: up to date or not, and why."""
    carbon = open_carbon(load_settings())
    plan = carbon.plan()
    _tell_plan(plan.verdicts, len(plan.due), carbon.clock(), ("table", "partition"), json=json)


def _tell_plan(
    verdicts: Sequence[Any], due: int, now: datetime, order: tuple[str, str], *, json: bool
) -> None:
    rows = [
        {"table": v.table, "partition": v.partition, "state": v.state, "reason": v.reason_code, "why": v.why}
        for v in verdicts
    ]
    if json:
        document({"now": now, "due": due, "verdicts": rows})
        return
    columns = (*order, "state", "why")
    table(columns, [[row[name] for name in columns] for row in rows])
    answer(f"{due} of {len(rows)} are due")


@check_app.command("market")
def check_market(json: Json = False) -> None:
    """The watchdog: newest day near and whole, no source failing. One line; exit 0 or 1."""
    seen = _watch(load_settings())
    if json:
        document(
            {"ok": seen.ok, "line": seen.line, "latest_day": seen.latest_day, "problems": list(seen.problems)}
        )
    else:
        answer(seen.line)
    raise typer.Exit(0 if seen.ok else 1)


def _watch(settings: Settings) -> Watch:
    from domain.market.watchdog import Watch, watch

    try:
        market = open_market(settings)
        now = market.clock()
        return watch(market.catalogue, market.observe(now), market.source_freshness(), now, market.rules)
    except PerennialError as error:
        # A watchdog that cannot look says so in its one line; cron reads nothing else.
        return Watch(False, f"ALERT market: {error.message.splitlines()[0]}", None, (error.message,))


def _names(name: str, query: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE) is not None


def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="One reading statement. SHOW ALL TABLES lists the lake's; the ledger has "
            "market.source_freshness, ops.work, ops.work_event and ops.partition_fact."
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
    """Ask the lake, and the ledger's own tables, in SQL."""
    from datetime import UTC

    settings = load_settings()
    asked = [name for name in LEDGER_VIEWS if _names(name, query)]
    views = open_ledger(settings).views() if asked else {}  # opening it costs as much as the query
    wanted = {name: views[name]() for name in asked}
    moment = as_of.replace(tzinfo=UTC) if as_of is not None and as_of.tzinfo is None else as_of
    result = open_lake(settings).sql(query, as_of=moment, extra=wanted)
    if json:
        document(result.to_pylist())
    elif csv:
        import sys

        from pyarrow.csv import write_csv

        write_csv(result, sys.stdout.buffer)
    else:
        shown = result.slice(0, limit)
        table(result.column_names, [list(row.values()) for row in shown.to_pylist()], exact=True)
        if result.num_rows > limit:
            say(f"{limit} of {result.num_rows:,} rows; --limit, --csv or --json show more")
