"""Running the house: up, demo, doctor, settings, pools, sandbox."""

from __future__ import annotations

import subprocess
import sys

import typer

from orchestration import registry
from orchestration.cli.output import Json, answer, document, table
from orchestration.environments import child_environment, load_settings

pools_app = typer.Typer(no_args_is_help=True)
sandbox_app = typer.Typer(no_args_is_help=True)

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""The sandbox has a command line of its own; ours only finds its address."""


def up() -> None:
    """UI, daemon and sandbox in the foreground, sensors and schedules on. Ctrl-C stops everything."""
    from orchestration.cli.up import run_up

    settings = load_settings()

    def before() -> None:
        from orchestration.instance import open_instance
        from orchestration.pools import ensure_pools
        from orchestration.services import open_ledger

        open_ledger(settings, write=True)
        for domain in registry.enabled(settings):
            domain.prepare(settings)
        with open_instance(settings) as instance:
            ensure_pools(instance, registry.pools(settings))

    raise typer.Exit(run_up(settings, before_start=before))


def api() -> None:
    """HTTP for programs, in the foreground: look at work, recover it, upload files."""
    from orchestration.api.serve import serve

    serve(load_settings())


def demo(json: Json = False) -> None:
    """Headless, from the sandbox: what each domain does, from its source to its report."""
    from orchestration.cli.demo import run_demo

    raise typer.Exit(run_demo(load_settings(), json=json))


def doctor(json: Json = False) -> None:
    """Are the settings, folders, databases, pools and the source all right? Exit 1 names what is not."""
    from orchestration.doctor import examine

    found = list(examine(load_settings()))
    if json:
        document([{"part": f.part, "ok": f.ok, "said": f.said} for f in found])
    else:
        table(["", "part", "what was found"], [("ok" if f.ok else "WRONG", f.part, f.said) for f in found])
    raise typer.Exit(0 if all(f.ok for f in found) else 1)


def migrate(json: Json = False) -> None:
    """Bring the work ledger's schema to this program's; `up` and every command that writes do it too."""
    from orchestration.services import open_ledger
    from resources.database.errors import location

    ledger = open_ledger(load_settings(), write=True)
    where = location(ledger.engine)
    document({"ledger": where, "migrated": True}) if json else answer(f"the ledger at {where} is current")


def settings(json: Json = False) -> None:
    """Every setting, its value here, and what it does. Secrets are hidden."""
    found: dict[str, tuple[str, str, str]] = {}
    for group in load_settings().groups():
        for variable, (name, field) in group.variables().items():
            found.setdefault(variable, (variable, group.shown(name), field.description or ""))
    rows = list(found.values())
    if json:
        document([{"setting": s, "value": v, "description": d} for s, v, d in rows])
    else:
        table(["setting", "value", "what it does"], rows)


@pools_app.command("show")
def show_pools(json: Json = False) -> None:
    """How far the instance's limits are from what is declared. Exit 1 if they differ."""
    from orchestration.instance import open_instance
    from orchestration.pools import drift

    settings = load_settings()
    declared = registry.pools(settings)
    with open_instance(settings) as instance:
        found = drift(instance, declared)
    if json:
        document({"declared": declared, "drift": [str(d) for d in found]})
    else:
        answer("\n".join(map(str, found)) if found else "the instance has the declared limits")
    raise typer.Exit(1 if found else 0)


@pools_app.command("apply")
def apply(json: Json = False) -> None:
    """Make the limits of our pools what is declared, whoever set them."""
    from orchestration.instance import open_instance
    from orchestration.pools import apply_pools

    settings = load_settings()
    declared = registry.pools(settings)
    with open_instance(settings) as instance:
        changed = apply_pools(instance, declared)
    if json:
        document({"declared": declared, "changed": [str(d) for d in changed]})
    else:
        answer("\n".join(f"changed: {d}" for d in changed) if changed else "nothing to change")


@sandbox_app.command(
    "serve",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def serve(context: typer.Context) -> None:
    """Serve the sandbox exchange (see `python -m sandbox serve --help`)."""
    raise typer.Exit(_sandbox("serve", *context.args))


@sandbox_app.command(
    "faults",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def faults(context: typer.Context) -> None:
    """Set, list or clear the faults of a running sandbox."""
    raise typer.Exit(_sandbox("faults", *context.args, *_address(context.args)))


@sandbox_app.command(
    "calls",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def calls(context: typer.Context) -> None:
    """What a running sandbox was asked."""
    raise typer.Exit(_sandbox("calls", *context.args, *_address(context.args)))


def _address(given: list[str]) -> list[str]:
    if "--url" in given:
        return []
    loaded = load_settings()
    found = next(filter(None, (domain.sandbox(loaded) for domain in registry.enabled(loaded))), None)
    return ["--url", found.url] if found else []


def _sandbox(*arguments: str) -> int:
    command = [sys.executable, "-m", "sandbox", *arguments]
    return subprocess.run(command, env=child_environment(load_settings()), check=False).returncode
