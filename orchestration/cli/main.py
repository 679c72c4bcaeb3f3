"""The `perennial` command. Exit codes: 0 healthy or done, 1 not, 2 wrong usage or settings."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from domain.shared.error import InvalidInput, PerennialError
from orchestration import registry
from orchestration.cli import operations, queries, sandbox, work
from orchestration.cli.check import check
from orchestration.cli.interrupt import interrupts_handled
from orchestration.cli.output import answer, say
from orchestration.cli.plan import show_plan
from orchestration.cli.status import status

PANELS = {
    "First steps": ("demo", "up", "doctor", "settings"),
    "Work on the data": (),  # the commands of every domain
    "See what is there": ("status", "plan", "check", "sql"),
    "Operate": ("work", "migrate", "pools", "api"),
    "Try what happens if": ("sandbox",),
}
"""The commands in order of work, in the sections of `--help`."""


class Commands(TyperGroup):
    """The generic commands and those of every domain, which are imported when one of them is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        in_order = [name for names in PANELS.values() for name in names or registry.MODULES]
        return sorted([*super().list_commands(ctx), *registry.MODULES], key=in_order.index)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found: Any
        if cmd_name in registry.MODULES:
            found = typer.main.get_command(registry.find_domain(cmd_name).commands())
        else:
            found = super().get_command(ctx, cmd_name)
        if found is not None:
            found.rich_help_panel = next(
                panel for panel, names in PANELS.items() if cmd_name in (names or registry.MODULES)
            )
        return found


app = typer.Typer(
    cls=Commands,
    help="Perennial keeps data alive: every partition healthy, being healed, or explained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(work.app, name="work", help="The work ledger: what waits, runs, failed, and why.")
app.add_typer(operations.pools_app, name="pools", help="Concurrency limits of the instance.")
app.add_typer(sandbox.app, name="sandbox", help="The sandbox, its faults, and broken days.")
app.command()(status)
app.command("plan")(show_plan)
app.command()(check)
app.command()(queries.sql)
app.command()(operations.up)
app.command()(operations.api)
app.command()(operations.demo)
app.command()(operations.doctor)
app.command()(operations.migrate)
app.command()(operations.settings)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        answer(f"perennial {version('perennial')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more on stderr.")] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )


def main() -> None:
    """Run the command. A known error ends it with one message; only a bug shows a stack trace."""
    try:
        with interrupts_handled():
            app(prog_name="perennial")
    except BrokenPipeError:
        # `perennial … | head`: the reader has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        from orchestration.library_errors import typed_error

        known = error if isinstance(error, PerennialError) else typed_error(error)
        if known is None:
            raise
        _end(known)


def _end(error: PerennialError) -> NoReturn:
    say(f"error: {error.message}")
    if error.remedy:
        say(f"remedy: {error.remedy}")
    sys.exit(2 if isinstance(error, InvalidInput) else 1)
