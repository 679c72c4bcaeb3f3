"""The references domain: what curators scrape, handed to ingestion once per content, and its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.domain import Domain, Sandbox, constant, function
from orchestration.sandboxes import home_sandbox
from orchestration.services import settings_of
from orchestration.settings import Settings

if TYPE_CHECKING:
    import dagster as dg

    from services.references.service import ReferencesService
    from services.references.settings import ReferencesSettings


def references_settings(settings: Settings) -> ReferencesSettings:
    from services.references.settings import ReferencesSettings

    return settings_of(settings, DOMAIN.name, ReferencesSettings)


def open_references(settings: Settings, *, write: bool = False) -> ReferencesService:
    from services.references.opening import open_service

    return open_service(references_settings(settings), write=write)


def _sandbox(settings: Settings) -> Sandbox | None:
    from services.references.sources import SANDBOX

    if references_settings(settings).references_sources != SANDBOX:
        return None
    return home_sandbox(settings, f"{DOMAIN.namespace}.references")


def _definitions(settings: Settings) -> dg.Definitions:
    import dagster as dg

    from assets.references.tables import references_assets
    from sensors.references.scraping import references_sensor
    from services.references.resource import ReferencesResource
    from services.references.sources import open_sources
    from services.resource import resource_text

    group = references_settings(settings)
    sources = list(open_sources(group))
    assets = references_assets(sources)
    return dg.Definitions(
        assets=assets,
        sensors=[references_sensor(dg.AssetSelection.assets(*assets), sources)],
        resources={"refs_service": ReferencesResource(settings=resource_text(group, type(group)))},
    )


DOMAIN = Domain(
    name="references",
    namespace="refs",
    settings=constant("services.references.settings:ReferencesSettings"),
    open=open_references,
    tables=constant("domain.references.tables:TABLES"),
    kinds=constant("domain.references.jobs:KINDS"),
    ledger_tables={
        "refs.scrape_run": constant("services.references.store:scrape_run"),
        "refs.handoff": constant("services.references.handoff_store:ingestion_handoffs"),
        "refs.handoff_scrape": constant("services.references.handoff_store:handoff_scrape"),
    },
    definitions=_definitions,
    retention=constant("assets.references.retention:RETENTION"),
    findings=function("services.references.findings:find_problems"),
    sources=function("services.references.findings:source_states"),
    watch=function("services.references.findings:watch_references"),
    checks=constant("services.references.findings:CHECKS"),
    pipelines=function("services.references.pipelines:view_pipelines"),
    begin="perennial references sync --all",
    commands=constant("orchestration.cli.references:app"),
    routes=function("orchestration.api.references:routes"),
    demo=function("orchestration.cli.references_demo:show_references"),
    sandbox=_sandbox,
)
