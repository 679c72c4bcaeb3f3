"""Carbon commands that explain numbers: what they are made of, and which factors lack or are stale."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from json import loads
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.shared.error import InvalidInput
from orchestration.cli.carbon_reports import Unit, print_notes
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from services.carbon.service import CarbonService

Year = Annotated[int | None, typer.Option("--year", help="The year.")]


def explain(
    year: Annotated[
        int | None, typer.Argument(help="The year; with --without-factor all years if none is given.")
    ] = None,
    unit: Unit = None,
    module: Annotated[str | None, typer.Option("--module", help="Only this module.")] = None,
    data_entry_type: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    institution: Annotated[
        str | None, typer.Option("--institution", help="Only entries of this institution.")
    ] = None,
    entry: Annotated[str | None, typer.Option("--entry", help="Only this entry, by its id.")] = None,
    without_factor: Annotated[
        bool, typer.Option("--without-factor", help="Instead: which entries no factor fits.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1_000, help="How many, the heaviest first.")
    ] = 20,
    json: Json = False,
) -> None:
    """What a number is made of: entries, their factors, the lines they came on, who uploaded them."""
    from services.carbon.explain import explain_results

    carbon = open_carbon(load_settings())
    types = _types(carbon, module, data_entry_type)
    if without_factor:
        if entry:
            raise InvalidInput("--entry and --without-factor are two questions", remedy="give one of them")
        _show_without_factor(carbon, year, types, institution, unit, limit, json=json)
        return
    if year is None:
        raise InvalidInput("no year is given", remedy="for example `perennial carbon explain 2025`")
    found = explain_results(
        carbon, year, unit=unit, types=types, institution=institution, entry=entry, limit=limit
    )
    if json:
        notes = list(found.notes)
        document({"year": year, "of_all": found.of_all, "results": found.results, "notes": notes})
        return
    for row in found.results:
        answer("\n".join(_explanation(carbon.catalogue.type(row["data_entry_type"]).quantity, row)))
    print_notes(found.notes)
    if found.of_all > len(found.results):
        shown = f"{len(found.results):,} of {found.of_all:,} results, the heaviest first"
        say(f"{shown}; `--limit` shows up to 1,000")


def _types(carbon: CarbonService, module: str | None, data_entry_type: str | None) -> list[str]:
    """The types that are meant; empty for all."""
    of_module = [kind.name for kind in carbon.catalogue.module(module).types] if module else []
    if not data_entry_type:
        return of_module
    name = carbon.catalogue.type(data_entry_type).name
    if of_module and name not in of_module:
        raise InvalidInput(f"{name} is no type of {module}", remedy="`perennial carbon types`")
    return [name]


def _show_without_factor(
    carbon: CarbonService,
    year: int | None,
    types: list[str],
    institution: str | None,
    unit: str | None,
    limit: int,
    *,
    json: bool,
) -> None:
    from domain.carbon.fallbacks import in_words
    from services.carbon.without_factor import find_without_factor

    years = [] if year is None else [year]
    found = find_without_factor(carbon, years, types=types, institution=institution, unit=unit, limit=limit)
    if json:
        document(found.as_json())
        return
    if not found.kinds:
        answer("no result lacks a factor")
        return
    rows = [
        [
            *(row[name] for name in ("year", "data_entry_type", "emission_type")),
            in_words(row["classification"]) if row["classification"] else "entries that have changed since",
            *(row[name] for name in ("entries", "units")),
        ]
        for row in found.kinds
    ]
    table(["year", "type", "emission", "no factor for", "entries", "units"], rows)
    shown = (
        "" if len(rows) == found.of_all else f"; {len(rows):,} of {found.of_all:,} kinds shown, see `--limit`"
    )
    answer(f"{found.results:,} results have no factor{shown}")


def _explanation(quantity: str, row: dict[str, Any]) -> Iterator[str]:
    from domain.carbon.fallbacks import is_fallback

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
        if not row["entry_changed"] and is_fallback(row["classification"], row["factor_words"]):
            yield f"    a fallback: no factor is for {_pairs(row['classification'])}"
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


COMMANDS = (explain, stale)
