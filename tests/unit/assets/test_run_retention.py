"""Old runs go, except those that show what exists. A real instance, small assets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from assets.run_retention import delete_runs
from tests.dagster_home import opened

DAYS = dg.StaticPartitionsDefinition(["monday", "tuesday"])
LATER = timedelta(minutes=1)


@dg.asset(partitions_def=DAYS)
def by_day() -> dg.MaterializeResult:
    return dg.MaterializeResult()


@dg.asset
def whole() -> dg.MaterializeResult:
    return dg.MaterializeResult()


@dg.asset
def broken() -> dg.MaterializeResult:
    raise dg.Failure("as intended", allow_retries=False)


def run(instance: dg.DagsterInstance, asset: dg.AssetsDefinition, day: str | None = None) -> str:
    return dg.materialize([asset], instance=instance, partition_key=day, raise_on_error=False).run_id


def files_of(run_id: str, home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and run_id in str(path)]


def test_delete_runs__older_than_the_horizon__keeps_the_newest_of_each_partition(tmp_path: Path) -> None:
    with opened(tmp_path) as instance:
        kept = [run(instance, by_day, "tuesday")]
        old = [run(instance, by_day, "monday"), run(instance, broken), run(instance, whole)]
        kept += [run(instance, by_day, "monday"), run(instance, whole)]
        before = {run_id: files_of(run_id, tmp_path) for run_id in (*old, *kept)}
        for files in before.values():
            assert {path.suffix for path in files} >= {".db", ".err"}
        assert delete_runs(instance, datetime.now(UTC) - timedelta(days=30)) == (0, 0)
        assert delete_runs(instance, datetime.now(UTC) + LATER, at_once=1) == (1, 1)
        assert delete_runs(instance, datetime.now(UTC) + LATER) == (2, 3)
        assert {r.run_id for r in instance.get_runs()} == set(kept)
        assert instance.get_materialized_partitions(by_day.key) == {"monday", "tuesday"}
        assert {run_id: files_of(run_id, tmp_path) for run_id in old} == {run_id: [] for run_id in old}
        assert {run_id: files_of(run_id, tmp_path) for run_id in kept} == {r: before[r] for r in kept}
        assert instance.all_logs(kept[-1])
