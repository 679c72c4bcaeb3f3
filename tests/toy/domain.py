"""A domain that lives in tests: it registers itself with one line and appears everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.domain import Demonstrated, Domain, constant
from orchestration.services import settings_of
from orchestration.settings import Settings
from tests.toy.rules import GREETINGS, KINDS, LOUD, finding
from tests.toy.service import ToyService, ToySettings, open_service

if TYPE_CHECKING:
    import dagster as dg
    from fastapi import APIRouter

    from domain.shared.health import Finding


def open_toy(settings: Settings, *, write: bool = False) -> ToyService:
    return open_service(settings_of(settings, "toy", ToySettings), write=write)


def _definitions(settings: Settings) -> dg.Definitions:
    from tests.toy.assets import definitions

    return definitions(settings.group(ToySettings))


def _findings(toy: ToyService) -> list[Finding]:
    return [finding(verdict) for verdict in toy.plan().due]


def _routes(settings: Settings) -> APIRouter:
    from fastapi import APIRouter

    router = APIRouter(tags=["toy"])

    @router.get("/toy/greeting", summary="The greeting")
    def greeting() -> dict[str, str]:
        return {"greeting": open_toy(settings).greeting}

    return router


def _demo(settings: Settings, *, shown: bool) -> Demonstrated:
    return Demonstrated(True, {"toy": {"shown": shown, "greeting": open_toy(settings).greeting}})


def _prepare(settings: Settings) -> None:
    (settings.home / "toy").mkdir(parents=True)


DOMAIN = Domain(
    name="toy",
    settings=lambda: ToySettings,
    open=open_toy,
    tables=lambda: (GREETINGS,),
    kinds=lambda: KINDS,
    views=lambda: LOUD,
    definitions=_definitions,
    retention=constant("tests.toy.assets:RETENTION"),
    pools=lambda: {"toy": 2},
    findings=_findings,
    checks=lambda: {"toy": lambda toy: f"says {toy.greeting}"},
    commands=constant("tests.toy.commands:app"),
    routes=_routes,
    demo=_demo,
    prepare=_prepare,
    pages={"toy.md": lambda: "# The toy\n"},
)
