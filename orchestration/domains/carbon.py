"""The carbon domain: emission factors, data entries, emissions, carbon reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.domain import Domain, constant, function
from orchestration.services import settings_of
from orchestration.settings import Settings

if TYPE_CHECKING:
    import dagster as dg

    from services.carbon.service import CarbonService
    from services.carbon.settings import CarbonSettings


def carbon_settings(settings: Settings) -> CarbonSettings:
    from services.carbon.settings import CarbonSettings

    return settings_of(settings, DOMAIN.name, CarbonSettings)


def open_carbon(settings: Settings, *, write: bool = False) -> CarbonService:
    from services.carbon.opening import open_service

    return open_service(carbon_settings(settings), write=write)


def _definitions(settings: Settings) -> dg.Definitions:
    import dagster as dg

    from assets.carbon.inbox_files import INBOX_FILES_KEY
    from assets.carbon.jobs import carbon_jobs
    from assets.carbon.tables import carbon_assets
    from assets.policies.definition import years
    from domain.carbon.catalogue import catalogue
    from sensors.carbon.feeds import feed_sensor
    from sensors.carbon.inbox import inbox_sensor
    from sensors.carbon.recalculation import recalculation_sensor
    from services.carbon.resource import CarbonResource
    from services.resource import resource_text

    group = carbon_settings(settings)
    assets = carbon_assets(catalogue(), years(*group.carbon_years))
    recalculated = dg.AssetSelection.assets(*assets) - dg.AssetSelection.assets(INBOX_FILES_KEY)
    return dg.Definitions(
        assets=assets,
        jobs=carbon_jobs(),
        sensors=[inbox_sensor, feed_sensor, recalculation_sensor(recalculated)],
        resources={"carbon_service": CarbonResource(settings=resource_text(group, type(group)))},
    )


def _prepare(settings: Settings) -> None:
    from services.carbon.inbox import open_inbox

    inbox, old = carbon_settings(settings).carbon_inbox, settings.home / "drop"
    if old.is_dir() and not inbox.exists():
        old.rename(inbox)  # its name in homes of earlier versions
    open_inbox(inbox).prepare()


DOMAIN = Domain(
    name="carbon",
    settings=constant("services.carbon.settings:CarbonSettings"),
    open=open_carbon,
    tables=constant("domain.carbon.tables:TABLES"),
    kinds=constant("domain.carbon.jobs:ALL_KINDS"),
    ledger_tables={
        "carbon.upload": constant("services.carbon.store:upload"),
        "carbon.feed_content": constant("services.carbon.store:feed_content"),
        "carbon.year_lock": constant("services.carbon.store:year_lock"),
    },
    definitions=_definitions,
    retention=constant("assets.carbon.retention:RETENTION"),
    findings=function("services.carbon.findings:find_problems"),
    sources=function("services.carbon.findings:source_states"),
    watch=function("services.carbon.findings:watch_carbon"),
    checks=constant("services.carbon.findings:CHECKS"),
    pipelines=function("services.carbon.pipelines:view_pipelines"),
    begin="perennial carbon upload",
    commands=constant("orchestration.cli.carbon:app"),
    routes=function("orchestration.api.carbon:routes"),
    demo=function("orchestration.cli.carbon_demo:show_carbon"),
    prepare=_prepare,
    pages={"carbon-types.md": function("services.carbon.types_page:render")},
)
