"""Carbon commands that only read: reports, differences, pipelines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.shared.error import InvalidInput
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.dates import parse_past
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from domain.shared.work import Work
    from services.carbon.pipelines import UploadPipeline
    from services.carbon.report import Report
    from services.carbon.service import CarbonService

Unit = Annotated[str | None, typer.Option("--unit", help="This unit with all below it.")]
MOST = 100_000
"""The most rows of `--limit` and hours of `--statistics`."""
FALLBACKS_SHOWN = 3
AsOf = Annotated[str | None, typer.Option("--as-of", help="As it was then, for example 2026-11-18T14:30.")]


def report(
    year: Annotated[int, typer.Argument(help="The year")],
    unit: Unit = None,
    as_of: AsOf = None,
    csv: Annotated[bool, typer.Option("--csv", help="Every unit, module and scope, as CSV.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page to be sent on: one file that needs no other.")
    ] = None,
    json: Json = False,
) -> None:
    """The report of a year, in tonnes of CO2e."""
    from services.carbon.report import report_of

    if csv and json:
        raise InvalidInput("--csv and --json are two answers", remedy="give one of them")
    carbon, at = open_carbon(load_settings()), parse_past(as_of)
    found = report_of(carbon, year, unit, at)
    page = None if html is None else write_page(carbon, html, year, unit, at)
    if json:
        document(found.as_json() | ({"page": page} if page else {}))
    elif csv:
        sys.stdout.write(found.as_csv())
        print_notes([*found.gaps, *found.notes])
    elif page:
        answer(f"{page['file']}: {page['bytes'] // 1024} kB")
        print_notes(found.notes)
    else:
        show_report(found)


def show_report(found: Report) -> None:
    table(["module", "scope 1 t", "scope 2 t", "scope 3 t", "total t", "without factor"], found.table())
    if found.fallback_note:
        answer(f"{found.fallback_note}:")
        for one in found.fallbacks[:FALLBACKS_SHOWN]:
            answer(f"    {one.mg / 1e9:,.3f} t  {one.data_entry_type} {one.instead}")
        if (more := len(found.fallbacks) - FALLBACKS_SHOWN) > 0:
            answer(f"    and {more:,} more kinds: `--json` has all")
    if any(row["unmatched"] for row in found.rows):
        answer(f"`perennial carbon explain {found.year} --without-factor` lists what lacks a factor")
    print_notes(found.notes)


def print_notes(notes: Sequence[str]) -> None:
    """On stderr, apart from the answer: a reader of the file has to know them."""
    for note in notes:
        say(note)


def write_page(
    carbon: CarbonService, path: Path, year: int, unit: str | None = None, at: datetime | None = None
) -> dict[str, Any]:
    """Write a report's page; what was written. A page that is there stays until the new one is whole."""
    from services.carbon.report_page import report_page

    if not path.name:
        raise InvalidInput(f"{str(path)!r} is no file", remedy="--html report.html")
    text = report_page(carbon, year, unit, at).encode()
    scratch = path.with_name(f".{path.name}.part")
    try:
        scratch.write_bytes(text)
        scratch.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    return {"file": str(path), "bytes": len(text)}


def diff(
    year: Annotated[int, typer.Argument(help="The year")],
    before: Annotated[str, typer.Option("--from", help="The earlier moment.")],
    after: Annotated[str | None, typer.Option("--to", help="The later moment (default: now).")] = None,
    unit: Unit = None,
    json: Json = False,
) -> None:
    """Compare two states of a report, module by module."""
    from services.carbon.report import difference, report_of

    carbon = open_carbon(load_settings())
    old = report_of(carbon, year, unit, parse_past(before))
    new = report_of(carbon, year, unit, parse_past(after))
    rows = difference(old, new)
    if json:
        document({"year": year, "unit": unit, "rows": rows, "notes": list(new.notes)})
    else:
        show_difference(rows)
        print_notes(new.notes)


def show_difference(rows: Sequence[dict[str, Any]]) -> None:
    masses = ("before_mg", "after_mg", "change_mg")
    table(
        ["module", "before t", "after t", "difference t", "%"],
        [(row["module"], *(f"{row[name] / 1e9:,.3f}" for name in masses), row["percent"]) for row in rows],
    )


def pipelines(
    pipeline: Annotated[
        str | None, typer.Argument(help="One of them; the beginning of its id will do.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST, help="How many, the newest first.")] = 20,
    hours: Annotated[
        int | None,
        typer.Option(
            "--statistics", min=1, max=MOST, help="Instead: how each kind of work did, these hours."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """What became of each upload: its phases, how long they took, what is on its way."""
    from services.carbon import pipelines as service

    carbon = open_carbon(load_settings())
    if hours is not None:
        _rows("statistics", service.statistics(carbon, hours), json=json)
    elif pipeline is not None:
        _show_pipeline(service.find_pipeline(carbon, pipeline), json=json)
    else:
        changing = service.changing_modules(carbon)
        rows = [one.as_json() for one in service.list_pipelines(carbon, limit)]
        if json:
            document({"pipelines": rows, "recalculating": changing})
            return
        _rows("pipelines", [_in_three_lines(row) for row in rows], json=False)
        for module in changing:
            say(f"recalculating: {module}")


def _in_three_lines(row: dict[str, Any]) -> dict[str, str]:
    """Return a pipeline as cells of several lines: a terminal has 80 columns."""
    seconds = "" if row["seconds"] is None else f"{row['seconds']:.3g} s"
    file = [row["file"], f"{row['kind']} by {row['by']}", *filter(None, [row["reason"]])]
    return {
        "pipeline, uploaded (UTC)": f"{row['pipeline']}\n{row['uploaded']:%Y-%m-%d %H:%M:%S}",
        "status": f"{row['status']}\n{seconds}",
        "file": "\n".join(file),
        "phases": "\n".join(f"{phase} {status}" for phase, status in row["phases"].items()),
    }


def _show_pipeline(found: UploadPipeline, *, json: bool) -> None:
    if json:
        columns = ("kind", "key", "status", "reason_code", "attempts", "started_at", "finished_at", "error")
        work = [{"id": row.id} | {name: getattr(row, name) for name in columns} for row in found.work]
        document(found.as_json() | {"work": work, "problems": list(found.upload.problems)})
        return
    upload = found.upload
    answer(f"{upload.pipeline_id} {found.state.status}: {upload.name}, uploaded by {upload.uploaded_by}")
    if found.locked:
        answer(f"    {found.locked}")
    _rows("work", [_work_in_lines(row) for row in found.work], json=False)


def _work_in_lines(row: Work) -> dict[str, Any]:
    moments = [f"{at:%Y-%m-%d %H:%M:%S}" for at in (row.started_at, row.finished_at) if at]
    return {
        "id": row.id,
        "work": f"{row.key}\n{row.kind}",
        "status": "\n".join(filter(None, [row.status, row.reason_code])),
        "tried": row.attempts,
        "from, to (UTC)": "\n".join(moments),
        "error": row.error,
    }


def _rows(name: str, rows: list[dict[str, Any]], *, json: bool) -> None:
    if json:
        document({name: rows})
    elif rows:
        table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        answer("nothing yet")


COMMANDS = (report, diff, pipelines)
