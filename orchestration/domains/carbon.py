"""The carbon domain: emission factors, data entries, emissions, carbon reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestration.domain import Call, Check, Demonstrated, Domain, Planned
from orchestration.services import settings_of
from orchestration.settings import Settings

if TYPE_CHECKING:
    import dagster as dg
    import typer
    from sqlalchemy import Table as DatabaseTable

    from domain.shared.health import Finding
    from domain.shared.table import Table
    from domain.shared.work import Kind
    from services.carbon.service import CarbonService
    from services.carbon.settings import CarbonSettings


def _tables() -> Sequence[Table]:
    from domain.carbon.tables import TABLES

    return TABLES


def _kinds() -> Sequence[Kind]:
    from domain.carbon.jobs import ALL_KINDS

    return ALL_KINDS


def _ledger_views() -> Mapping[str, DatabaseTable]:
    from services.carbon.store import VIEWS

    return VIEWS


def _settings() -> type[CarbonSettings]:
    from services.carbon.settings import CarbonSettings

    return CarbonSettings


def carbon_settings(settings: Settings) -> CarbonSettings:
    return settings.group(DOMAIN.name, _settings())


def open_carbon(settings: Settings, *, write: bool = False) -> CarbonService:
    from services.carbon.opening import open_service

    return open_service(settings_of(settings, DOMAIN.name, _settings()), write=write)


def _definitions(settings: Settings) -> dg.Definitions:
    import dagster as dg

    from assets.carbon.inbox_files import INBOX_FILES_KEY
    from assets.carbon.tables import carbon_assets
    from domain.carbon.catalogue import catalogue
    from sensors.carbon.feeds import feed_sensor
    from sensors.carbon.inbox import inbox_sensor
    from sensors.carbon.recalculation import recalculation_sensor
    from services.carbon.resource import CarbonResource
    from services.resource import resource_text

    assets, group = carbon_assets(catalogue()), carbon_settings(settings)
    recalculated = dg.AssetSelection.assets(*assets) - dg.AssetSelection.assets(INBOX_FILES_KEY)
    return dg.Definitions(
        assets=assets,
        sensors=[inbox_sensor, feed_sensor, recalculation_sensor(recalculated)],
        resources={"carbon_service": CarbonResource(settings=resource_text(group, type(group)))},
    )


def _retention() -> Sequence[dg.AssetsDefinition]:
    from assets.carbon.retention import upload_retention

    return [upload_retention]


def _plan(settings: Settings) -> Planned:
    carbon = open_carbon(settings)
    plan = carbon.plan()
    return Planned(carbon.clock(), len(plan.due), plan.verdicts)


def _findings(settings: Settings) -> list[Finding]:
    from services.carbon.findings import findings

    return findings(open_carbon(settings), carbon_settings(settings).carbon_drop)


def _check_uploads(settings: Settings) -> str:
    from services.carbon.checks import check_uploads

    return check_uploads(open_carbon(settings))


def _check_applications(settings: Settings) -> str:
    from services.carbon.checks import check_applications

    return check_applications(open_carbon(settings))


def _checks(settings: Settings) -> Mapping[str, Check]:
    polls = carbon_settings(settings).polls_feeds
    return {"uploads": _check_uploads} | ({"applications": _check_applications} if polls else {})


def _commands() -> typer.Typer:
    from orchestration.cli.carbon import app

    return app


def _calls(settings: Settings) -> Sequence[Call]:
    from orchestration.api.carbon import calls

    return calls(settings)


def _demo(settings: Settings, *, shown: bool) -> Demonstrated:
    from orchestration.cli.carbon_demo import show_carbon

    return show_carbon(settings, shown=shown)


def _prepare(settings: Settings) -> None:
    from services.carbon.inbox import open_inbox

    open_inbox(carbon_settings(settings).carbon_drop).prepare()


def _types_page() -> str:
    from domain.carbon.catalogue import catalogue
    from services.carbon.types_page import render

    return render(catalogue())


DOMAIN = Domain(
    name="carbon",
    settings=_settings,
    tables=_tables,
    kinds=_kinds,
    ledger_views=_ledger_views,
    definitions=_definitions,
    retention=_retention,
    plan=_plan,
    findings=_findings,
    checks=_checks,
    commands=_commands,
    calls=_calls,
    demo=_demo,
    prepare=_prepare,
    pages={"carbon-types.md": _types_page},
)
