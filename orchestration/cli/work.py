"""`perennial work`: list, show, retry and cancel work items of the ledger."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from domain.shared.error import InvalidInput
from domain.shared.work import FAILED, STATUSES
from orchestration import registry
from orchestration.cli.output import Json, answer, document, table
from orchestration.environments import load_settings
from orchestration.services import open_ledger

app = typer.Typer(no_args_is_help=True)

Id = Annotated[int, typer.Argument(min=1, max=2**63 - 1, help="The id of the work, as `work list` shows it.")]


@app.command("list")
def list_work(
    kind: Annotated[str | None, typer.Option(help="A kind of work, as `work list` shows it.")] = None,
    key: Annotated[str | None, typer.Option(help="The key's beginning: normalized_daily:2026-11.")] = None,
    status: Annotated[list[str] | None, typer.Option(help=", ".join(STATUSES))] = None,
    deferred: Annotated[bool, typer.Option("--deferred", help="Short for --status deferred.")] = False,
    limit: Annotated[int, typer.Option(min=1)] = 50,
    json: Json = False,
) -> None:
    """List the newest work items."""
    wanted = [*(status or []), *(["deferred"] if deferred else [])]
    if unknown := [s for s in wanted if s not in STATUSES]:
        raise InvalidInput(f"unknown status {', '.join(unknown)}", remedy=f"one of {', '.join(STATUSES)}")
    if key is not None and "." in key.partition(":")[0]:  # keys have no namespace
        key = key.partition(".")[2]
    rows = open_ledger(load_settings()).find(kind, key, wanted or None, limit)
    if json:
        document([asdict(row) for row in rows])
        return
    table(
        ["id", "kind", "key", "status", "reason", "attempts", "not before (UTC)", "run", "error"],
        [
            (
                str(r.id),
                r.kind,
                r.key,
                r.status,
                r.reason_code,
                r.attempts,
                r.not_before if r.status in ("queued", "deferred") else None,
                (r.run_id or "")[:8],
                _first_line(r.error),
            )
            for r in rows
        ],
    )


def _first_line(error: str | None) -> str:
    return (error or "").partition("\n")[0]


@app.command()
def show(work_id: Id, json: Json = False) -> None:
    """Show a work item with its history."""
    ledger = open_ledger(load_settings())
    row = ledger.get(work_id)
    if row is None:
        raise InvalidInput(f"there is no work {work_id}", remedy="perennial work list")
    events = ledger.events(work_id)
    if json:
        document({**asdict(row), "events": [asdict(e) for e in events]})
        return
    table(
        ["field", "value"],
        [(name, str(value)) for name, value in asdict(row).items() if value not in (None, "")],
    )
    table(
        ["at (UTC)", "event", "status", "attempt", "reason", "error"],
        [(e.at, e.event, e.status, e.attempt, e.reason_code, _first_line(e.error)) for e in events],
    )


@app.command()
def retry(
    work_ids: Annotated[list[int] | None, typer.Argument(min=1, max=2**63 - 1, metavar="[ID]...")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="All that failed for this reason code.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="With --reason: of this domain only.")
    ] = None,
    json: Json = False,
) -> None:
    """Make work items due now; a finished one is queued as a new one."""
    if bool(work_ids) is (reason is not None) or (domain and reason is None):
        raise InvalidInput(
            "give ids of work items, or a reason",
            remedy="perennial work retry ID …, or --reason CODE [--domain NAME]",
        )
    settings = load_settings()
    ledger = open_ledger(settings, write=True)
    if reason is not None:
        kinds = registry.require_domain(settings, domain).kinds() if domain else registry.kinds(settings)
        counting = ledger.current([kind.name for kind in kinds])
        work_ids = [row.id for row in counting if row.status == FAILED and row.reason_code == reason]
    rows = [ledger.retry(work_id) for work_id in work_ids or ()]
    if json:
        one = reason is None and len(rows) == 1
        document(asdict(rows[0]) if one else [asdict(row) for row in rows])
        return
    for row in rows:
        answer(f"work {row.id} {row.key} is {row.status}, due now")
    if not rows:
        answer(f"nothing failed for the reason {reason}")


@app.command()
def cancel(work_id: Id, json: Json = False) -> None:
    """Give a work item up; it is queued again only when something has changed."""
    row = open_ledger(load_settings(), write=True).cancel(work_id)
    document(asdict(row)) if json else answer(f"work {row.id} {row.key} is {row.status}")
