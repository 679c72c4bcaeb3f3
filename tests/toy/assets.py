"""The toy in Dagster: its resource, its asset, its sensor, and the asset that forgets."""

import dagster as dg

from assets.policies.definition import OWNERS
from assets.policies.table_asset import table_asset
from assets.policies.tags import DISPATCH
from sensors.unfinished import unfinished_dispatches
from services.resource import resource_text
from tests.toy.rules import GREETINGS
from tests.toy.service import ToyService, ToySettings, open_service, write_greetings


class ToyResource(dg.ConfigurableResource):
    settings: dict[str, str]

    def open(self) -> ToyService:
        return open_service(ToySettings.read(self.settings), write=True)


greetings = table_asset([GREETINGS], write_greetings, kinds={"iceberg"}, pool="toy")


@dg.asset(key=["ops", "toy_retention"], group_name="ops", owners=OWNERS, description="Forgets nothing.")
def toy_retention() -> None: ...


RETENTION = [toy_retention]


@dg.sensor(
    name="toy_sensor",
    target=[greetings],
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def toy_sensor(context: dg.SensorEvaluationContext, toy_service: ToyResource) -> list[dg.RunRequest]:
    found = toy_service.open().reconcile(sorted(unfinished_dispatches(context.instance)))
    return [dg.RunRequest(run_key=one.id, tags={DISPATCH: one.id}) for one in found]


def definitions(settings: ToySettings) -> dg.Definitions:
    resource = ToyResource(settings=resource_text(settings, ToySettings))
    return dg.Definitions(assets=[greetings], sensors=[toy_sensor], resources={"toy_service": resource})
