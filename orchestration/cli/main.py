"""The `perennial` command. Exit codes: 0 well, 1 not well, 2 wrong usage or settings."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from domain.shared.error import InvalidInput, PerennialError
from orchestration import registry
from orchestration.cli import looking, operate, work
from orchestration.cli.output import say


class Commands(TyperGroup):
    """The commands of every domain beside the generic ones; a domain's are imported when one is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *registry.MODULES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in registry.MODULES:
            return typer.main.get_command(registry.find_domain(cmd_name).commands())
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Commands,
    help="Perennial keeps data alive: every partition healthy, being healed, or explained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(work.app, name="work", help="The work ledger: what waits, runs, failed, and why.")
app.add_typer(operate.pools_app, name="pools", help="Concurrency limits of the instance.")
app.add_typer(operate.sandbox_app, name="sandbox", help="The sandbox exchange and its faults.")
app.command()(looking.status)
app.command()(looking.plan)
app.command()(looking.check)
app.command()(looking.sql)
app.command()(operate.up)
app.command()(operate.api)
app.command()(operate.demo)
app.command()(operate.doctor)
app.command()(operate.migrate)
app.command()(operate.settings)


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell more on stderr.")] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )


def main() -> None:
    """Trouble is one clear message; only a bug shows a stack trace."""
    with _output_kept() as given_back:
        _run(given_back)


def _run(given_back: Callable[[], None]) -> None:
    try:
        app()
    except PerennialError as error:
        given_back()
        _end(error)
    except BrokenPipeError:
        # `perennial … | head`: the reader has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        from orchestration.trouble import trouble

        found = trouble(error)
        if found is None:
            raise
        given_back()
        _end(found)


@contextmanager
def _output_kept() -> Iterator[Callable[[], None]]:
    """Dagster points stdout and stderr at its log files while a step runs. Where the disk is full it may fail
    to point them back, and the command would end without a word."""
    kept = {number: os.dup(number) for number in (1, 2) if _is_open(number)}

    def given_back() -> None:
        for number, copy in kept.items():
            os.dup2(copy, number)

    try:
        yield given_back
    finally:
        given_back()
        for copy in kept.values():
            os.close(copy)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _end(error: PerennialError) -> NoReturn:
    say(f"error: {error.message}")
    if error.remedy:
        say(f"remedy: {error.remedy}")
    sys.exit(2 if isinstance(error, InvalidInput) else 1)
