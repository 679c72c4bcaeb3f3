"""The carbon domain: emission factors, data entries, emissions, carbon reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestration.domain import Call, Check, Demonstrated, Domain, Planned
from orchestration.registry import require_domain
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings

if TYPE_CHECKING:
    import dagster as dg
    import typer
    from sqlalchemy import Table as DatabaseTable

    from domain.shared.health import Finding
    from domain.shared.table import Table
    from domain.shared.work import Kind
    from resources.feeds.client import FeedClient
    from services.carbon.resource import CarbonResource
    from services.carbon.service import CarbonService


def _tables() -> Sequence[Table]:
    from domain.carbon.tables import TABLES

    return TABLES


def _kinds() -> Sequence[Kind]:
    from domain.carbon.jobs import ALL_KINDS

    return ALL_KINDS


def _ledger_views() -> Mapping[str, DatabaseTable]:
    from services.carbon.store import VIEWS

    return VIEWS


def open_carbon(settings: Settings, *, write: bool = False) -> CarbonService:
    from domain.carbon.catalogue import catalogue
    from resources.objects.staging import Staging
    from services.carbon.service import CarbonService

    require_domain(settings, DOMAIN.name)
    return CarbonService(
        catalogue=catalogue(),
        lake=open_lake(settings, _tables()),
        ledger=open_ledger(settings, _kinds(), write=write),
        staging=Staging.at(settings.uploads),
        feeds=_feeds(settings),
    )


def _feeds(settings: Settings) -> dict[str, FeedClient]:
    if not (settings.carbon_app_url or settings.carbon_api_url):
        return {}  # without importing what speaks HTTP: a look costs a fraction of a second
    from services.carbon.feed_clients import open_feeds

    return open_feeds(
        manual=(settings.carbon_app_url, settings.carbon_app_token),
        api=(settings.carbon_api_url, settings.carbon_api_token),
    )


def carbon_resource(settings: Settings) -> CarbonResource:
    import dagster as dg

    from orchestration.build import lake_resource, ledger_resource, secret_url
    from services.carbon.resource import CarbonResource

    return CarbonResource(
        lake=lake_resource(settings),
        ledger=ledger_resource(settings),
        uploads=settings.uploads,
        drop=str(settings.carbon_drop),
        app_url=secret_url(settings.carbon_app_url, "PERENNIAL_CARBON_APP_URL"),
        app_token=dg.EnvVar("PERENNIAL_CARBON_APP_TOKEN") if settings.carbon_app_token else "",
        api_url=secret_url(settings.carbon_api_url, "PERENNIAL_CARBON_API_URL"),
        api_token=dg.EnvVar("PERENNIAL_CARBON_API_TOKEN") if settings.carbon_api_token else "",
    )


def _definitions(settings: Settings) -> dg.Definitions:
    import dagster as dg

    from assets.carbon.inbox_files import INBOX_FILES_KEY
    from assets.carbon.tables import carbon_assets
    from domain.carbon.catalogue import catalogue
    from sensors.carbon.feeds import feed_sensor
    from sensors.carbon.inbox import inbox_sensor
    from sensors.carbon.recalculation import recalculation_sensor

    assets = carbon_assets(catalogue())
    recalculated = dg.AssetSelection.assets(*assets) - dg.AssetSelection.assets(INBOX_FILES_KEY)
    return dg.Definitions(
        assets=assets,
        sensors=[inbox_sensor, feed_sensor, recalculation_sensor(recalculated)],
        resources={"office": carbon_resource(settings)},
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

    return findings(open_carbon(settings), settings.carbon_drop)


def _check_uploads(settings: Settings) -> str:
    from services.carbon.checks import check_uploads

    return check_uploads(open_carbon(settings))


def _check_applications(settings: Settings) -> str:
    from services.carbon.checks import check_applications

    return check_applications(open_carbon(settings))


def _checks(settings: Settings) -> Mapping[str, Check]:
    pulled = settings.carbon_app_url or settings.carbon_api_url
    return {"uploads": _check_uploads} | ({"applications": _check_applications} if pulled else {})


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

    open_inbox(settings.carbon_drop).prepare()


def _types_page() -> str:
    from domain.carbon.catalogue import catalogue
    from services.carbon.types_page import render

    return render(catalogue())


DOMAIN = Domain(
    name="carbon",
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
