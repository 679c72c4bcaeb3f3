"""`perennial status`: what is unhealthy, and why. Imports no Dagster."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput
from domain.shared.health import needs_person, unobserved
from orchestration.cli.interrupt import interrupts_raised
from orchestration.cli.output import Json, answer, document
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from rich.text import Text

    from orchestration.cli.status_view import Line
    from orchestration.health import Overview

SECONDS = 5
"""Between two answers of `--watch`."""


def _lines(seen: Overview, *, whole: bool) -> list[Line]:
    from domain.shared.finding_groups import group
    from orchestration.cli.status_view import Screen, render, shown, zone

    size = get_terminal_size()
    screen = Screen(size.columns, None if whole else size.lines)
    head = [f"{shown(seen.at)}, all times in {zone(seen.at)}", seen.summary(shown), ""]
    return render(group(seen.found), head, screen, seen.at)


def status(
    everything: Annotated[
        bool, typer.Option("--all", help="Every group with its cause, however long the answer is.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every few seconds, until Ctrl-C.")
    ] = False,
    json: Json = False,
) -> None:
    """What is unhealthy, the worst first: why, since when, what happens next, what a person can do.

    Partitions with the same trouble are one group, and what they cause is below them. Exit code 1 if a
    person has to do something.
    """
    from orchestration.health import Overview, overview

    if watch:
        _watch(whole=everything)
        return
    try:
        seen = overview(load_settings())
    except InvalidInput as error:
        if json:  # a program reads this problem where it reads all others
            document(Overview([unobserved("platform", "settings", error)], machine_clock()).as_json())
            raise typer.Exit(2) from error
        raise
    if json:
        document(seen.as_json())
    elif seen.found:
        _print(_lines(seen, whole=everything))
    else:
        answer(seen.summary())
    raise typer.Exit(1 if needs_person(seen.found) else 0)


def _watch(*, whole: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    from orchestration.health import overview

    console = Console(highlight=False)
    with (
        suppress(KeyboardInterrupt),
        interrupts_raised(),
        Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
    ):
        while True:
            live.update(_text(_lines(overview(load_settings()), whole=whole)), refresh=True)
            time.sleep(SECONDS)


def _print(lines: list[Line]) -> None:
    if not sys.stdout.isatty():
        answer("\n".join(map(str, lines)))
        return
    from rich.console import Console

    # Colours unless NO_COLOR is set, which rich itself respects.
    Console(highlight=False, soft_wrap=True).print(_text(lines))


def _text(lines: list[Line]) -> Text:
    from rich.text import Text

    from orchestration.cli.status_view import INDENT, STYLE

    text = Text()
    for line in lines:
        if text:
            text.append("\n")
        if line.mark:
            text.append(f"{line.mark:<{len(INDENT)}}", STYLE[line.mark])
        text.append(line.text, line.style)
    return text
