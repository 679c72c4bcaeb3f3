"""The toy in Dagster: its resource, its asset, its sensor, and the asset that forgets."""

import dagster as dg

from assets.policies.definition import OWNERS
from assets.policies.table_asset import table_asset
from sensors.reconcile import reconcile_sensor
from services.resource import resource_text
from tests.toy.rules import GREETINGS
from tests.toy.service import ToyReconciler, ToyService, ToySettings, open_service, write_greetings


class ToyResource(dg.ConfigurableResource):
    settings: dict[str, str]

    def open(self) -> ToyService:
        return open_service(ToySettings.read(self.settings), write=True)


greetings = table_asset([GREETINGS], write_greetings, kinds={"iceberg"}, pool="toy")


@dg.asset(key=["ops", "toy_retention"], group_name="ops", owners=OWNERS, description="Forgets nothing.")
def toy_retention() -> None: ...


RETENTION = [toy_retention]


toy_sensor = reconcile_sensor(
    "toy_sensor", "toy_service", ToyReconciler, dg.AssetSelection.assets(greetings), "Has the world greeted."
)


def definitions(settings: ToySettings) -> dg.Definitions:
    resource = ToyResource(settings=resource_text(settings, ToySettings))
    return dg.Definitions(assets=[greetings], sensors=[toy_sensor], resources={"toy_service": resource})
