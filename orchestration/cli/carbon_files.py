"""Carbon commands about files: templates, the data entry types, a sample university."""

from __future__ import annotations

import sys
from csv import DictReader
from pathlib import Path
from typing import Annotated

import typer

from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput
from orchestration.cli.output import Json, answer, document, table


def template(
    what: Annotated[str, typer.Argument(help="units, factors, or a data entry type")],
    year: Annotated[int | None, typer.Option("--year", help="The year in its rows.")] = None,
    json: Json = False,
) -> None:
    """The header and example rows of a file."""
    from domain.carbon.catalogue import catalogue
    from services.carbon.template import template

    text = template(catalogue(), what, year or machine_clock().year - 1)
    if json:
        rows = list(DictReader(text.splitlines()))
        document({"what": what, "columns": list(rows[0]), "rows": rows})
    else:
        sys.stdout.write(text)


def types(json: Json = False) -> None:
    """The data entry types, and how each is calculated."""
    from domain.carbon.catalogue import catalogue

    known = catalogue().types.values()
    rows = [{"module": t.module, "type": t.name, "title": t.title, "formula": t.formula} for t in known]
    if json:
        document({"types": rows})
    else:
        table(["module", "type", "title", "formula"], [list(r.values()) for r in rows])


def sample(
    folder: Annotated[Path, typer.Argument(help="Where to write the files.")],
    scale: Annotated[
        float, typer.Option("--scale", min=0.001, max=100, help="1 is about 200,000 entries in three years.")
    ] = 1.0,
    json: Json = False,
) -> None:
    """Write a sample university's files: units, factors and data of three years, and newer factors."""
    from sandbox.carbon.institution import YEARS, write, write_revision

    try:
        written = [*write(folder, scale), write_revision(folder, YEARS[-1])]
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}") from None
    if json:
        files = [{"file": str(w.path), "kind": w.kind, "year": w.year, "rows": w.rows} for w in written]
        document({"folder": str(folder), "files": files})
        return
    entries = sum(one.rows for one in written if one.kind == "data")
    answer(f"{len(written)} files with {entries:,} entries in {folder}")


COMMANDS = (template, types, sample)
