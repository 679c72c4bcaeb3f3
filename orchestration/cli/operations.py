"""Commands that operate the platform: up, api, demo, doctor, migrate, settings, pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration import registry
from orchestration.cli.interrupt import leave_at_once
from orchestration.cli.output import Json, answer, document, table
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from orchestration.pools import Drift
    from orchestration.settings import Settings

pools_app = typer.Typer(no_args_is_help=True)
_DOWN = "Delete the tables of an optional branch (handoffs) and their history; they stay away."


def up() -> None:
    """UI, daemon, HTTP API and sandbox in the foreground, sensors on. Ctrl-C stops everything."""
    from orchestration.cli.up import run_up

    settings = load_settings()
    code = run_up(
        settings, before_start=lambda: prepare(settings), after_stop=lambda: end_stopped_runs(settings)
    )
    leave_at_once(code)


def prepare(settings: Settings) -> None:
    """Bring a home up to date before anything runs: the ledger, the domains' folders, the pools."""
    from orchestration.instance import open_instance
    from orchestration.pools import apply_pools
    from orchestration.services import open_ledger

    open_ledger(settings, write=True)
    for domain in registry.enabled(settings):
        domain.prepare(settings)
    with open_instance(settings) as instance:
        apply_pools(instance, registry.pools(settings), only_new=True)


def end_stopped_runs(settings: Settings) -> None:
    """End the runs of a daemon that was stopped. Those of commands go on; of a cluster's this process knows
    nothing."""
    if settings.env != "embedded":
        return
    from orchestration.instance import open_instance
    from orchestration.presence import command_of, commands_folder, living_commands
    from orchestration.services import open_ledger
    from sensors.work_sweep import end_interrupted

    living = living_commands(commands_folder(settings.home))
    with open_instance(settings) as instance:
        end_interrupted(instance, open_ledger(settings), lambda run_id: command_of(run_id) not in living)


def api() -> None:
    """The HTTP API alone, in the foreground; `up` serves it too. GET /openapi.json describes it."""
    from orchestration.api.serve import serve

    serve(load_settings())


def demo(json: Json = False) -> None:
    """Headless, from the sandbox: what each domain does, from its source to its report."""
    from orchestration.cli.demo import run_demo

    raise typer.Exit(run_demo(load_settings(), json=json))


def doctor(json: Json = False) -> None:
    """Check settings, folders, databases, pools and sources. Exit 1 if one of them is wrong."""
    from orchestration.doctor import examine

    found = list(examine(load_settings()))
    if json:
        document([{"part": f.part, "ok": f.ok, "result": f.result} for f in found])
    else:
        table(["", "part", "what was found"], [("ok" if f.ok else "WRONG", f.part, f.result) for f in found])
    raise typer.Exit(0 if all(f.ok for f in found) else 1)


def migrate(
    down: Annotated[str, typer.Option(metavar="BRANCH", help=_DOWN)] = "",
    up: Annotated[str, typer.Option(metavar="BRANCH", help="Bring such tables back, empty.")] = "",
    json: Json = False,
) -> None:
    """Bring the work ledger's schema to this program's; `up` and every command that writes do it too."""
    from orchestration.services import open_ledger
    from resources.database.errors import location
    from resources.database.migrate import branches, bring_branch_back, take_branch_away

    engine = open_ledger(load_settings(), write=True).engine
    if down:
        take_branch_away(engine, down)
    if up:
        bring_branch_back(engine, up)
    where, there = location(engine), branches(engine)
    if json:
        document({"ledger": where, "migrated": True, "branches": there})
        return
    away = "".join(
        f"; without {name}, as a person wants it" for name, is_there in there.items() if not is_there
    )
    answer(f"the ledger at {where} is current{away}")


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
    """How the instance's limits differ from the declared ones. Exit 1 if they differ."""
    from orchestration.pools import drift

    declared, found = _compare_pools(drift)
    if json:
        document({"declared": declared, "drift": [str(d) for d in found]})
    else:
        answer("\n".join(map(str, found)) if found else "the instance has the declared limits")
    raise typer.Exit(1 if found else 0)


@pools_app.command("apply")
def apply(json: Json = False) -> None:
    """Set the limits of the declared pools, also where a person set others."""
    from orchestration.pools import apply_pools

    declared, changed = _compare_pools(apply_pools)
    if json:
        document({"declared": declared, "changed": [str(d) for d in changed]})
    else:
        answer("\n".join(f"changed: {d}" for d in changed) if changed else "nothing to change")


def _compare_pools(compare: Callable[..., list[Drift]]) -> tuple[dict[str, int], list[Drift]]:
    from orchestration.instance import open_instance

    settings = load_settings()
    declared = registry.pools(settings)
    with open_instance(settings) as instance:
        return declared, compare(instance, declared)
