"""The `perennial` command. Exit codes: 0 well, 1 not well, 2 wrong usage or settings."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, NoReturn

import typer

from domain.shared.error import InvalidInput, PerennialError
from orchestration.cli import looking, market, operate, work
from orchestration.cli.output import say

app = typer.Typer(
    help="Perennial keeps data alive: every partition healthy, being healed, or explained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(market.app, name="market", help="Fetch, heal and backfill the market warehouse.")
app.add_typer(looking.plan_app, name="plan", help="What would be done, and why.")
app.add_typer(looking.check_app, name="check", help="One line for cron: exit 0 if well, 1 if not.")
app.add_typer(work.app, name="work", help="The work ledger: what waits, runs, failed, and why.")
app.add_typer(operate.pools_app, name="pools", help="Concurrency limits of the instance.")
app.add_typer(operate.sandbox_app, name="sandbox", help="The sandbox exchange and its faults.")
app.command()(looking.status)
app.command()(looking.sql)
app.command()(operate.up)
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
    try:
        app()
    except PerennialError as error:
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
        _end(found)


def _end(error: PerennialError) -> NoReturn:
    say(f"error: {error.message}")
    if error.remedy:
        say(f"remedy: {error.remedy}")
    sys.exit(2 if isinstance(error, InvalidInput) else 1)
