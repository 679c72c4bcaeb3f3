"""The output of commands: tables or one JSON document on stdout, everything else on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from domain.shared.printable import printable
from orchestration.document import as_document

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def say(text: str) -> None:
    """Write a line for people, which is not part of the answer."""
    sys.stderr.write(f"{text}\n")


def answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def document(value: Any) -> None:
    sys.stdout.write(as_document(value) + "\n")


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "", *, exact: bool = False
) -> None:
    """Print a table as wide as the terminal; long values take several lines. `exact` shows all digits."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console as RichConsole
    from rich.table import Table

    class Console(RichConsole):
        def on_broken_pipe(self) -> None:  # rich would end the program with a failure
            raise BrokenPipeError

    # In a file and a pipe as wide as COLUMNS says.
    console = Console(width=None if sys.stdout.isatty() else get_terminal_size((200, 24))[0], highlight=False)
    shown = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        values = zip(columns, row, strict=True)
        shown.add_row(
            *(str(value) if name == "year" and value else _text(value, exact) for name, value in values)
        )
    console.print(shown)


def _text(value: Any, exact: bool) -> str:
    from rich.markup import escape

    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:,.15g}" if exact else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    # Text of a source may contain commands for the terminal.
    return escape(printable(str(value), keep="\n"))
