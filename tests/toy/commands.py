"""`perennial toy`."""

from __future__ import annotations

import typer

from orchestration.cli.output import answer
from orchestration.environments import load_settings
from tests.toy.domain import open_toy

app = typer.Typer(name="toy", no_args_is_help=True, help="Greet the world.")


@app.callback()
def toy() -> None:
    """A toy."""


@app.command()
def greet() -> None:
    """Write the greeting that is set."""
    from assets.policies.tags import DISPATCH
    from orchestration.cli.runner import runner

    settings = load_settings()
    with runner(settings) as run:
        for dispatch in open_toy(settings, write=True).reconcile():
            end = run.run(["greetings"], domain="toy", tags={DISPATCH: dispatch.id})
            answer(f"greeted: {end.success}")
