"""`perennial sandbox`: the sandbox of this home: its faults, and broken days in the lake."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from domain.shared.error import InvalidInput
from orchestration import registry
from orchestration.cli.output import answer, say
from orchestration.environments import child_environment, load_settings
from orchestration.reading import Reader

if TYPE_CHECKING:
    from orchestration.settings import Settings

app = typer.Typer(no_args_is_help=True)
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=PASS_ON)
def serve(context: typer.Context) -> None:
    """Serve the sandbox of every source (see `perennial sandbox serve --help`)."""
    raise typer.Exit(_sandbox("serve", *context.args))


@app.command(context_settings=PASS_ON)
def faults(context: typer.Context) -> None:
    """Set, list or clear the faults of a running sandbox."""
    raise typer.Exit(_sandbox("faults", *context.args, *_address(context.args)))


@app.command(context_settings=PASS_ON)
def calls(context: typer.Context) -> None:
    """List the calls that a running sandbox received."""
    raise typer.Exit(_sandbox("calls", *context.args, *_address(context.args)))


@app.command("break")
def break_day(
    days: Annotated[
        list[str] | None, typer.Argument(metavar="[DATE]...", help="Partitions; else the newest day.")
    ] = None,
    drop_day: Annotated[bool, typer.Option("--drop-day", help="Delete all rows.")] = False,
    drop_half: Annotated[
        bool, typer.Option("--drop-half", help="Delete every row but the first half.")
    ] = False,
    corrupt_day: Annotated[bool, typer.Option("--corrupt-day", help="Change the numbers a little.")] = False,
    rot_file: Annotated[bool, typer.Option("--rot-file", help="Cut the end off the data files.")] = False,
    table: Annotated[
        str | None, typer.Option("--table", help="A table, with its namespace or without.")
    ] = None,
) -> None:
    """Break days in the lake behind the platform's back, to see it find and heal them. Sandbox only."""
    from sandbox.lake import BREAKS, break_partition

    chosen = {"drop-day": drop_day, "drop-half": drop_half, "corrupt-day": corrupt_day, "rot-file": rot_file}
    if list(chosen.values()).count(True) != 1:
        raise InvalidInput(
            "days are broken in one way at a time",
            remedy=f"give one of {', '.join(f'--{name}' for name in chosen)}",
        )
    how = next(name for name, given in chosen.items() if given)
    settings = load_settings()
    name, domain = _breakable(settings, table)
    properties = Reader(settings).location.properties
    for day in days or (None,):
        key, done = break_partition(properties, name, how, day)
        answer(f"{name} {key}: {done}")
    state = BREAKS[how][1]
    say(
        f"next: `perennial plan {domain} --due` says {state}; `perennial up` heals it by itself within "
        f"a minute, `perennial {domain} heal` at once"
    )


def _breakable(settings: Settings, given: str | None) -> tuple[str, str]:
    """The table to break, and its domain. Refuses one of a domain whose source is real, or whose data is."""
    domains = {domain.namespace: domain for domain in registry.enabled(settings)}
    made_up = {name: found for name, domain in domains.items() if (found := domain.sandbox(settings))}
    usual = next((found.table for found in made_up.values()), "")
    name = registry.table_name(settings, given) if given else usual
    namespace = name.partition(".")[0]
    if namespace not in made_up:
        raise InvalidInput(
            "only a lake that is filled from the sandbox may be broken" + (f", not {name}" if name else ""),
            reason_code="not_the_sandbox",
            remedy=f"name a table of {', '.join(made_up)}"
            if made_up
            else "set PERENNIAL_SOURCE=sandbox and a PERENNIAL_HOME of its own",
        )
    domains[namespace].open(settings)
    return name, domains[namespace].name


def _address(given: list[str]) -> list[str]:
    if "--url" in given:
        return []
    settings = load_settings()
    found = next(filter(None, (domain.sandbox(settings) for domain in registry.enabled(settings))), None)
    return ["--url", found.url] if found else []


def _sandbox(*arguments: str) -> int:
    command = [sys.executable, "-m", "sandbox", *arguments]
    return subprocess.run(command, env=child_environment(load_settings()), check=False).returncode
