"""How commands speak: tables or one JSON document on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any

import typer

from domain.shared.printable import printable

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def say(text: str) -> None:
    """A line for people; never part of the answer."""
    sys.stderr.write(f"{text}\n")


def answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def document(value: Any) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain, allow_nan=False)
    except ValueError:  # JSON has no NaN and no infinity: readers expect null
        text = json.dumps(_finite(value), ensure_ascii=False, indent=2, default=_plain)
    sys.stdout.write(text + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "", *, exact: bool = False
) -> None:
    """A table as wide as the terminal, words that are longer on several lines; piped, it is not cut. `exact`:
    fractions as they are, and not as many digits as a person takes in."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console as RichConsole
    from rich.table import Table

    class Console(RichConsole):
        def on_broken_pipe(self) -> None:  # rich would end the program as a failure
            raise BrokenPipeError

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    shown = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        states = zip(columns, row, strict=True)
        shown.add_row(
            *(str(c) if name == "year" and c is not None else _text(c, exact) for name, c in states)
        )
    console.print(shown)


def _text(state: Any, exact: bool) -> str:
    from rich.markup import escape

    if state is None:
        return ""
    if isinstance(state, datetime):
        return f"{state:%Y-%m-%d %H:%M:%S}"
    if isinstance(state, float):
        return f"{state:,.15g}" if exact else f"{state:.4g}"
    if isinstance(state, int) and not isinstance(state, bool):
        return f"{state:,}"
    # A source's words may carry commands for the terminal.
    return escape(printable(str(state), keep="\n"))
