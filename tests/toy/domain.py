"""A domain that lives in tests: it registers itself with one line and appears everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from domain.shared.clock import machine_clock
from orchestration.domain import Call, Check, Demonstrated, Domain, Planned
from orchestration.services import settings_of
from orchestration.settings import Settings
from tests.toy.rules import GREETINGS, KINDS, LOUD, finding
from tests.toy.service import ToyService, ToySettings, open_service

if TYPE_CHECKING:
    import dagster as dg
    import typer

    from domain.shared.health import Finding


def open_toy(settings: Settings, *, write: bool = False) -> ToyService:
    return open_service(settings_of(settings, "toy", ToySettings), write=write)


def _definitions(settings: Settings) -> dg.Definitions:
    from tests.toy.assets import definitions

    return definitions(settings.group("toy", ToySettings))


def _retention() -> Sequence[dg.AssetsDefinition]:
    from tests.toy.assets import toy_retention

    return [toy_retention]


def _plan(settings: Settings) -> Planned:
    verdict = open_toy(settings).plan()
    return Planned(machine_clock(), int(verdict.due), [verdict])


def _findings(settings: Settings) -> list[Finding]:
    verdict = open_toy(settings).plan()
    return [finding(verdict)] if verdict.due else []


def _checks(_: Settings) -> Mapping[str, Check]:
    return {"toy": lambda settings: f"says {open_toy(settings).greeting}"}


def _calls(settings: Settings) -> Sequence[Call]:
    from orchestration.api.answers import json_response

    async def greeting(_: Request) -> Response:
        return json_response(200, {"greeting": open_toy(settings).greeting})

    return [Call("GET", "/toy/greeting", greeting)]


def _commands() -> typer.Typer:
    from tests.toy.commands import app

    return app


def _demo(settings: Settings, *, shown: bool) -> Demonstrated:
    return Demonstrated(True, {"toy": {"shown": shown, "greeting": open_toy(settings).greeting}})


def _prepare(settings: Settings) -> None:
    (settings.home / "toy").mkdir(parents=True)


DOMAIN = Domain(
    name="toy",
    settings=lambda: ToySettings,
    tables=lambda: (GREETINGS,),
    kinds=lambda: KINDS,
    views=lambda: LOUD,
    definitions=_definitions,
    retention=_retention,
    pools=lambda: {"toy": 2},
    plan=_plan,
    findings=_findings,
    checks=_checks,
    commands=_commands,
    calls=_calls,
    demo=_demo,
    prepare=_prepare,
    pages={"toy.md": lambda: "# The toy\n"},
)
