"""What Dagster shows of partitions: checks that cannot judge a run, and one chart for a batch."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from assets.policies.recording import Recorder
from domain.shared.table import Version
from services.partitions import PartitionReport
from tests.unit.resources.lake.frames import DAILY

KEY = dg.AssetKey(DAILY.name.split("."))
DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-06-01")


class Judged:
    """A check that judges each partition, and all together if there is any."""

    specs = (dg.AssetCheckSpec("whole", asset=KEY),)

    def of(self, report: PartitionReport) -> dg.AssetCheckEvaluation:
        return dg.AssetCheckEvaluation(
            asset_key=KEY, check_name="whole", passed=False, metadata={}, partition=report.partition
        )

    def totals(self, reports: Sequence[PartitionReport]) -> Iterator[dg.AssetCheckResult]:
        if reports:
            yield dg.AssetCheckResult(
                passed=True, asset_key=KEY, check_name="whole", metadata={"days": len(reports)}
            )


def run(instance: dg.DagsterInstance, days: Sequence[str], *, killed: bool = False) -> Any:
    """The last evaluation of a run that commits these days."""

    @dg.multi_asset(
        specs=[dg.AssetSpec(KEY, partitions_def=DAYS)], check_specs=Judged.specs, partitions_def=DAYS
    )
    def write(context: dg.AssetExecutionContext) -> Iterator[object]:
        recorder = Recorder(context, [DAILY], Judged())
        recorder([PartitionReport(DAILY, day, "committed", Version(n, "x")) for n, day in enumerate(days)])
        if killed:
            raise KeyboardInterrupt
        yield from recorder.results()

    job = dg.Definitions([write]).resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, partition_key="2024-01-01", raise_on_error=False)
    judged = [e for e in result.all_events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    return judged[-1].asset_check_evaluation_data if judged else None


def test_check__run_that_judges_nothing__says_what_was_said_before_hundreds_of_partitions() -> None:
    days = DAYS.get_partition_keys()
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, days[:3]).metadata["days"].value == 3
        run(instance, days, killed=True)
        last = run(instance, [])
    assert (last.passed, last.metadata["days"].value) == (True, 3)


def test_check__never_judged__is_a_warning_and_not_passed() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        last = run(instance, [])
    assert (last.passed, last.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "not judged yet" in str(last.metadata["note"].value)


def test_batch__many_partitions__has_a_chart_in_its_newest_event_alone() -> None:
    days = DAYS.get_partition_keys()
    with dg.DagsterInstance.ephemeral() as instance:
        run(instance, days)
        records = instance.fetch_materializations(KEY, limit=200).records
    charts = [r.partition_key for r in records if "rows_of_recent_days" in r.asset_materialization.metadata]
    assert (len(records), charts) == (len(days), [days[-1]])
