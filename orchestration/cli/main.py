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
from orchestration.cli.output import say
from orchestration.cli.plan import show_plan
from orchestration.cli.status import status


class Commands(TyperGroup):
    """The generic commands and those of every domain, which are imported when one of them is called."""

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
app.add_typer(operations.pools_app, name="pools", help="Concurrency limits of the instance.")
app.add_typer(sandbox.app, name="sandbox", help="The sandbox exchange and its faults.")
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


@app.callback()
def options(
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
        app()
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
