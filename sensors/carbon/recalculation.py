"""What starts carbon runs."""

import dagster as dg

from sensors.reconcile import reconcile_sensor
from services.carbon.reconcile import CarbonReconciler


def recalculation_sensor(assets: dg.AssetSelection) -> dg.SensorDefinition:
    return reconcile_sensor(
        "carbon_recalculation_sensor",
        "carbon_service",
        CarbonReconciler,
        assets,
        "Ingests what was uploaded, recalculates what that changes, and sums up the report.",
    )
