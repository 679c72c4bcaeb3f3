"""`perennial sandbox`: the sandbox's command line, with the address of the one that runs for this home."""

from __future__ import annotations

import subprocess
import sys

import typer

from orchestration import registry
from orchestration.environments import child_environment, load_settings

app = typer.Typer(no_args_is_help=True)
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=PASS_ON)
def serve(context: typer.Context) -> None:
    """Serve the sandbox exchange (see `python -m sandbox serve --help`)."""
    raise typer.Exit(_sandbox("serve", *context.args))


@app.command(context_settings=PASS_ON)
def faults(context: typer.Context) -> None:
    """Set, list or clear the faults of a running sandbox."""
    raise typer.Exit(_sandbox("faults", *context.args, *_address(context.args)))


@app.command(context_settings=PASS_ON)
def calls(context: typer.Context) -> None:
    """List the calls that a running sandbox received."""
    raise typer.Exit(_sandbox("calls", *context.args, *_address(context.args)))


def _address(given: list[str]) -> list[str]:
    if "--url" in given:
        return []
    settings = load_settings()
    found = next(filter(None, (domain.sandbox(settings) for domain in registry.enabled(settings))), None)
    return ["--url", found.url] if found else []


def _sandbox(*arguments: str) -> int:
    command = [sys.executable, "-m", "sandbox", *arguments]
    return subprocess.run(command, env=child_environment(load_settings()), check=False).returncode
