"""Carbon commands: upload files, see reports, explain every number. Without a daemon if need be."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from domain.shared.error import InvalidInput
from orchestration.cli import carbon_explain, carbon_files, carbon_reports, carbon_work
from orchestration.cli.carbon_drive import drive_pipelines
from orchestration.cli.order import in_order
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from services.carbon.service import CarbonService
    from services.carbon.upload import Receipt
    from services.carbon.uploaded_file import File

_UNITS_SHOWN = 10
"""Of those whose sums a file of units would change."""

app = typer.Typer(
    name="carbon",
    no_args_is_help=True,
    help="Upload factors and data; see reports and explain them.",
    cls=in_order(
        "types", "template", "sample", "upload", "fetch", "pull", "heal", "pipelines", "report", "explain"
    ),
)
for command in (
    *carbon_reports.COMMANDS,
    *carbon_explain.COMMANDS,
    *carbon_files.COMMANDS,
    *carbon_work.COMMANDS,
):
    app.command()(command)

Year = Annotated[int | None, typer.Option("--year", help="The year, if the file does not name it.")]


@app.command()
def upload(
    kind: Annotated[Literal["factors", "data", "units"], typer.Argument(help="What the files hold.")],
    files: Annotated[list[Path], typer.Argument(help="CSV or Parquet files")],
    year: Year = None,
    data_entry_type: Annotated[
        str | None, typer.Option("--type", help="The data entry type, if the file does not name it.")
    ] = None,
    institution: Annotated[
        str, typer.Option("--institution", help="Whose units or data these are.")
    ] = "main",
    decimal: Annotated[
        Literal["point", "comma"] | None, typer.Option("--decimal", help="If the numbers leave doubt.")
    ] = None,
    accept_valid: Annotated[
        bool, typer.Option("--accept-valid", help="Import the good rows of a file that has others.")
    ] = False,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Show what would change, and change nothing.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a file even by one with less than half of its rows.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Run the pipeline to its end, here.")] = False,
    json: Json = False,
) -> None:
    """Upload files. Each is checked whole before anything of it is imported."""
    from services.carbon.upload import upload
    from services.carbon.uploaded_file import File

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    for path in files:
        with _file_errors(path):
            path.stat()  # before any is uploaded; opened once only, as a pipe is read once
    uploaded: set[int] = set()

    def one(path: Path) -> dict[str, Any]:
        file = File(
            kind=kind,
            name=path.name,
            content=_content(path),
            by=getpass.getuser(),
            institution=institution,
            year=year,
            data_entry_type=data_entry_type,
            mark=decimal,
        )
        if what_if:
            return foresee(carbon, file, accept_valid=accept_valid, may_shrink=replace, shown=not json)
        receipt = upload(carbon, file, accept_valid=accept_valid, may_shrink=replace, together=uploaded)
        uploaded.add(receipt.upload.id)
        if not json:
            _say_receipt(receipt)
        return receipt.as_json()

    receipts = [_or_refused(one, path, alone=len(files) == 1, shown=not json) for path in files]
    refusals = sum("refused" in receipt for receipt in receipts)
    names = {receipt["pipeline"] for receipt in receipts if "pipeline" in receipt}
    failed = drive_pipelines(settings, carbon, names) if wait and not what_if else []
    if not (wait or what_if or json) and len(receipts) > refusals:
        say("a running daemon does the rest; without one `perennial carbon heal` does")
    if json:
        document({"ok": not (refusals or failed), "files": receipts, "failed": failed})
    raise typer.Exit(1 if refusals or failed else 0)


def _or_refused(
    upload_one: Callable[[Path], dict[str, Any]], path: Path, *, alone: bool, shown: bool
) -> dict[str, Any]:
    """What became of a file. One that is refused stops no other."""
    from domain.shared.tabular.problems import FileRefused, count_of_problems

    try:
        return upload_one(path)
    except FileRefused as error:
        say(f"refused: {path.name}: {count_of_problems(error.total)}; nothing of it was imported")
        problems = [p.as_json() for p in error.problems]
        if shown:
            _table_of(problems, error.total)
        return {"file": path.name, "refused": True, "problems": problems, "problem_count": error.total}
    except InvalidInput as error:
        if alone:
            raise
        say(f"refused: {error.message}" + (f" ({error.remedy})" if error.remedy else ""))
        return {"file": path.name, "refused": True, "reason": error.message}


def foresee(
    carbon: CarbonService,
    file: File,
    *,
    accept_valid: bool = False,
    may_shrink: bool = False,
    shown: bool,
) -> dict[str, Any]:
    """Return what an upload of the file would change; print it if `shown`."""
    from services.carbon.what_if import what_if

    found = what_if(carbon, file, accept_valid=accept_valid, may_shrink=may_shrink)
    if shown:
        changes = [f["change"] for f in found.factors]
        counts = ", ".join(f"{changes.count(c)} {c}" for c in ("new", "changed", "stale") if c in changes)
        answer(f"{file.name}: {found.rows:,} rows" + (f"; factors: {counts}" if counts else ""))
        for one in found.replaced:
            answer(f"    {one}")
        effects = [*found.effects, *found.units[:_UNITS_SHOWN]]
        for effect in effects:
            answer(f"    it {effect.sentence}")
        if len(found.units) > _UNITS_SHOWN:
            answer(f"    and changes {len(found.units) - _UNITS_SHOWN:,} more units")
        if not effects:
            answer("    it changes no result, and no unit's sum")
        for note in found.notes:
            say(f"note: {file.name}: {note}")
    return {"file": file.name, "what_if": found.as_json()}


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None


def _content(path: Path) -> bytes:
    from services.carbon.uploaded_file import LARGEST

    with _file_errors(path), path.open("rb") as file:
        content = file.read(LARGEST + 1)  # a device says nothing of its size
    if len(content) > LARGEST:
        raise InvalidInput(f"{path} is larger than {LARGEST >> 20} MiB", remedy="split it by year")
    return content


def _say_receipt(receipt: Receipt) -> None:
    one = receipt.upload
    answer(f"{one.name}: {receipt.summary}")
    if receipt.known:
        return
    for note in receipt.notes:
        answer(f"    {note}")
    for warning in one.warnings[:10]:
        say(f"warning: {one.name}: {warning}")
    if one.problem_count:
        _table_of(one.problems, one.problem_count)


def _table_of(problems: Sequence[Mapping[str, Any]], total: int) -> None:
    rows = [[p["line"] or "", p["column"], p["value"], p["reason"]] for p in problems]
    table(["line", "column", "value", "problem"], rows)
    if total > len(problems):
        answer(f"and {total - len(problems):,} more")
