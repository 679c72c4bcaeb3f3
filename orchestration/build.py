"""Builds the Dagster definitions from the settings. Pure wiring: no environment, no I/O."""

import warnings

import dagster as dg

from assets.lake_maintenance import lake_maintenance
from assets.run_retention import run_retention
from domain.shared.clock import PLATFORM_ZONE
from orchestration import registry
from orchestration.settings import Settings
from sensors.upkeep import upkeep_schedule
from sensors.work_sweep import work_sweep_sensor
from services.resource import StorageResource, resource_text
from services.settings import StorageSettings


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
    job = dg.define_asset_job(
        "upkeep_job",
        dg.AssetSelection.assets(*upkeep),
        description="Compacts and tidies the lake, deletes old runs and superseded readings.",
    )
    return dg.Definitions(
        assets=upkeep,
        sensors=[work_sweep_sensor(registry.kinds(settings))],
        jobs=[job],
        schedules=[upkeep_schedule(job, PLATFORM_ZONE.key)],
        resources={"storage": StorageResource(settings=resource_text(settings, StorageSettings))},
        # A step process costs seconds of imports; nothing here needs isolation.
        executor=dg.in_process_executor,
    )
