"""Carbon commands that only read: reports, differences, explanations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from services.carbon.pipelines import UploadPipeline
    from services.carbon.report import Report
    from services.carbon.service import CarbonService

Year = Annotated[int | None, typer.Option("--year", help="The year.")]
Unit = Annotated[str | None, typer.Option("--unit", help="This unit with all below it.")]
MOST = 100_000
"""The most rows of `--limit` and hours of `--statistics`."""
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
    carbon, at = open_carbon(load_settings()), moment(as_of)
    found = report_of(carbon, year, unit, at)
    page = None if html is None else write_page(carbon, html, year, unit, at)
    if json:
        document(found.as_json() | ({"page": page} if page else {}))
    elif csv:
        sys.stdout.write(found.as_csv())
        _print_notes(found.notes)
    elif page:
        answer(f"{page['file']}: {page['bytes'] // 1024} kB")
        _print_notes(found.notes)
    else:
        show_report(found)


def show_report(found: Report) -> None:
    table(["module", "scope 1 t", "scope 2 t", "scope 3 t", "total t", "without factor"], found.table())
    _print_notes(found.notes)


def _print_notes(notes: Sequence[str]) -> None:
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


def moment(text: str | None) -> datetime | None:
    """A moment that somebody typed: without a zone UTC, without an hour the end of that day, or None (now) of
    today."""
    if text is None:
        return None
    try:
        begins = datetime.fromisoformat(text)
        begins = (begins if begins.tzinfo else begins.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no moment", remedy="2026-11-18 or 2026-11-18T14:30+01:00") from None
    now = machine_clock()
    if begins > now:
        raise InvalidInput(f"{text} is yet to come", remedy="name a moment that has passed")
    if len(text) > len("2026-11-18"):
        return begins
    ends = begins + timedelta(days=1)
    return ends if ends <= now else None


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
    old = report_of(carbon, year, unit, moment(before))
    new = report_of(carbon, year, unit, moment(after))
    rows = difference(old, new)
    if json:
        document({"year": year, "unit": unit, "rows": rows, "notes": list(new.notes)})
    else:
        show_difference(rows)
        _print_notes(new.notes)


def show_difference(rows: Sequence[dict[str, Any]]) -> None:
    masses = ("before_mg", "after_mg", "change_mg")
    table(
        ["module", "before t", "after t", "difference t", "%"],
        [(row["module"], *(f"{row[name] / 1e9:,.3f}" for name in masses), row["percent"]) for row in rows],
    )


def explain(
    year: Annotated[int, typer.Argument(help="The year")],
    unit: Unit = None,
    data_entry_type: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    entry: Annotated[str | None, typer.Option("--entry", help="Only this entry, by its id.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1_000, help="How many, the heaviest first.")
    ] = 20,
    json: Json = False,
) -> None:
    """What a number is made of: entries, their factors, the lines they came on, who uploaded them."""
    from services.carbon.explain import explain_results

    carbon = open_carbon(load_settings())
    found = explain_results(
        carbon, year, unit=unit, data_entry_type=data_entry_type, entry=entry, limit=limit
    )
    if json:
        notes = list(found.notes)
        document({"year": year, "of_all": found.of_all, "results": found.results, "notes": notes})
        return
    for row in found.results:
        answer("\n".join(_explanation(carbon.catalogue.type(row["data_entry_type"]).quantity, row)))
    _print_notes(found.notes)
    if found.of_all > len(found.results):
        shown = f"{len(found.results):,} of {found.of_all:,} results, the heaviest first"
        say(f"{shown}; `--limit` shows up to 1,000")


def _explanation(quantity: str, row: dict[str, Any]) -> Iterator[str]:
    mass = "no mass" if row["kg_co2e"] is None else f"{row['kg_co2e']:,.3f} kg"
    entry = row["entry_id"] or "an entry that is gone"
    yield f"{mass}  {row['data_entry_type']}, {row['emission_type']}, {row['unit_id']}, {entry}"
    if row["entry_changed"]:
        yield f"    the entries of {row['data_entry_type']} have changed since; recalculation is due"
    else:
        yield f"    {_formatted(row['quantity'])} {row['unit']} = {quantity}: {_pairs(row['details'])}"
        yield _origin(row, "data", row["data_at"])
    if row["status"] == "overridden":
        yield "    measured: the file gives the mass itself"
    elif row["status"] == "unmatched":
        yield f"    no factor fits {'it' if row['entry_changed'] else _pairs(row['classification'])}"
    else:
        factor = f"factor {row['factor_id']} version {row['factor_version']}"
        source = row["factor_source"] or "no source"
        keys = f" for {_pairs(row['factor_words'])}" if row["factor_words"] != "{}" else ""
        yield f"    × {_formatted(row['factor_value'])} {row['factor_unit']}{keys} ({factor}: {source})"
        yield _origin(row, "factor", row["factor_from"])


def _pairs(classification: str) -> str:
    """A JSON object as text: `cabin first, haul long`."""
    return ", ".join(f"{name} {_formatted(value)}" for name, value in loads(classification).items())


def _formatted(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.15g}" if isinstance(value, float) else str(value)


def _origin(row: dict[str, Any], what: str, at: datetime | None) -> str:
    return f"    {_upload(row[f'{what}_file'], row[f'{what}_line'], at, row[f'{what}_by'])}"


def _upload(file: str | None, line: int | None, at: datetime | None, who: str | None) -> str:
    when = f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "?"
    return f"{file} line {line}, uploaded {when} by {who}"


def stale(year: Year = None, json: Json = False) -> None:
    """Factors that the latest file lacks; they are still used."""
    from services.carbon.explain import stale_factors

    rows = stale_factors(open_carbon(load_settings()), year)
    if json:
        document({"factors": rows})
    elif not rows:
        answer("no factor is stale")
    else:
        table(
            ["year", "type", "emission", "for", "value", "unit", "entries", "tonnes", "uploaded"],
            [
                [
                    *(row[name] for name in ("year", "data_entry_type", "emission_type")),
                    _pairs(row["classification"]),
                    _formatted(row["value"]),
                    row["unit"],
                    f"{row['entries']:,}",
                    f"{row['tonnes']:,.3f}",
                    _upload(row["file"], row["line"], row["uploaded_at"], row["uploaded_by"]),
                ]
                for row in rows
            ],
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
        shown = [row | {"phases": ", ".join(f"{k} {v}" for k, v in row["phases"].items())} for row in rows]
        _rows("pipelines", shown, json=False)
        for module in changing:
            say(f"recalculating: {module}")


def _show_pipeline(found: UploadPipeline, *, json: bool) -> None:
    columns = ("kind", "key", "status", "reason_code", "attempts", "started_at", "finished_at", "error")
    work = [{"id": row.id} | {name: getattr(row, name) for name in columns} for row in found.work]
    if json:
        document(found.as_json() | {"work": work, "problems": list(found.upload.problems)})
        return
    upload = found.upload
    answer(f"{upload.pipeline_id} {found.state.status}: {upload.name}, uploaded by {upload.uploaded_by}")
    if found.locked:
        answer(f"    {found.locked}")
    _rows("work", work, json=False)


def _rows(name: str, rows: list[dict[str, Any]], *, json: bool) -> None:
    if json:
        document({name: rows})
    elif rows:
        table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        answer("nothing yet")


COMMANDS = (report, diff, explain, pipelines, stale)
