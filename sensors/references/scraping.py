"""What starts runs of the references: sources that are due, hand-offs and ingestion jobs that wait."""

import dagster as dg

from sensors.reconcile import reconcile_sensor
from services.references.reconcile import ReferencesReconciler


def references_sensor(assets: dg.AssetSelection) -> dg.SensorDefinition:
    return reconcile_sensor(
        "references_sensor",
        "refs_service",
        ReferencesReconciler,
        assets,
        "Scrapes each source when it is due, hands over what is new, and has it ingested.",
    )
