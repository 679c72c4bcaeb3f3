"""What starts runs of the references: sources that are due, hand-offs and ingestion jobs that wait."""

from collections.abc import Sequence

import dagster as dg

from sensors.reconcile import reconcile_sensor
from services.references.reconcile import ReferencesReconciler


def references_sensor(assets: dg.AssetSelection, sources: Sequence[str]) -> dg.SensorDefinition:
    """`sources` are the partitions that Dagster knows: a request of another would fail the tick, so a
    source that was added since waits until the definitions are loaded again."""
    return reconcile_sensor(
        "references_sensor",
        "refs_service",
        lambda service: ReferencesReconciler(service.of_sources(sources)),
        assets,
        "Scrapes each source when it is due, hands over what is new, and has it ingested.",
    )
