"""Builds the Dagster definitions from the settings. Pure wiring: no environment, no I/O."""

import warnings

import dagster as dg

from assets.lake_maintenance import lake_maintenance
from assets.run_retention import run_retention
from orchestration import registry
from orchestration.schedules import upkeep_schedule
from orchestration.setting_values import redacted_url
from orchestration.settings import Settings
from resources.lake.resource import LakeResource
from resources.ledger.resource import LedgerResource
from sensors.work_sweep import work_sweep_sensor

DATABASE = "PERENNIAL_DATABASE_URL"


def build_definitions(settings: Settings) -> dg.Definitions:
    with warnings.catch_warnings():
        # Backfill policies are marked beta; that we use them is decided, not news at every start.
        warnings.simplefilter("ignore", dg.BetaWarning)
        domains = [domain.definitions(settings) for domain in registry.enabled(settings)]
        return dg.Definitions.merge(_platform(settings), *domains)


def _platform(settings: Settings) -> dg.Definitions:
    """What every domain needs: the care of lake and ledger, and the sweep of abandoned work."""
    upkeep = [
        lake_maintenance(registry.tables(settings)),
        run_retention,
        *(asset for domain in registry.enabled(settings) for asset in domain.retention()),
    ]
    return dg.Definitions(
        assets=upkeep,
        sensors=[work_sweep_sensor(registry.kinds(settings))],
        schedules=[upkeep_schedule(upkeep)],
        resources={"lake": lake_resource(settings), "ledger": ledger_resource(settings)},
        # A step process costs seconds of imports; nothing here needs isolation.
        executor=dg.in_process_executor,
    )


def lake_resource(settings: Settings) -> LakeResource:
    """Secrets are named, not copied: the UI shows the variable, never its value."""
    shared = settings.catalog_url == settings.database_url
    return LakeResource(
        catalog_url=_address(settings.catalog_url, DATABASE if shared else "PERENNIAL_CATALOG_URL"),
        warehouse=settings.warehouse,
        home=str(settings.home),
        memory_limit=settings.memory_limit,
        threads=settings.threads,
    )


def ledger_resource(settings: Settings) -> LedgerResource:
    return LedgerResource(
        url=_address(settings.database_url, DATABASE),
        source=settings.source,
        stopped_at=settings.now.isoformat() if settings.now else "",
    )


def secret_url(url: str, variable: str) -> str:
    """An address that holds a secret is named by its variable."""
    return dg.EnvVar(variable) if redacted_url(url) != url else url


def _address(url: str, variable: str) -> str:
    """A server's address carries a password, a file's does not."""
    return dg.EnvVar(variable) if url.startswith("postgresql") else url
