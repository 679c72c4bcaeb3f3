"""`perennial toy`."""

from __future__ import annotations

import typer

from orchestration.cli.output import answer
from orchestration.environments import load_settings
from tests.toy.domain import open_toy
from tests.toy.service import ToyReconciler

app = typer.Typer(name="toy", no_args_is_help=True, help="Greet the world.")


@app.callback()
def toy() -> None:
    """A toy."""


@app.command()
def greet() -> None:
    """Write the greeting that is set."""
    from orchestration.cli.runner import runner
    from services.run_until_idle import run_until_idle

    settings = load_settings()
    toy = open_toy(settings, write=True)
    with runner(settings) as run:
        run_until_idle(ToyReconciler(toy), run)
    answer(f"greeted: {not toy.plan().due}")
