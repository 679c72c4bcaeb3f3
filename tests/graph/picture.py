"""The asset graph as a short text, for people to review: `python -m tests.graph.picture` writes it anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg

from orchestration.build import build_definitions
from orchestration.environments import load_settings

PICTURE = Path(__file__).with_name("asset_graph.txt")
UPDATE = "python -m tests.graph.picture"


def definitions() -> dg.Definitions:
    """As built from an empty environment, but for what depends on the day."""
    days = {"PERENNIAL_MARKET_START": "2024-11-01", "PERENNIAL_NOW": "2026-11-17T18:31"}
    return build_definitions(load_settings(days))


def draw(defs: dg.Definitions) -> str:
    graph = defs.resolve_asset_graph()
    blocks = [
        *("\n".join(_asset(defs, key)) for key in sorted(graph.get_all_asset_keys())),
        *("\n".join(_sensor(graph, s)) for s in sorted(defs.sensors or (), key=lambda s: s.name)),
        *("\n".join(_job(graph, j)) for j in sorted(defs.jobs or (), key=lambda j: j.name)),
        *("\n".join(_schedule(graph, s)) for s in sorted(defs.schedules or (), key=lambda s: s.name)),
    ]
    return "\n\n".join(blocks) + "\n"


def _asset(defs: dg.Definitions, key: dg.AssetKey) -> Iterator[str]:
    graph = defs.resolve_asset_graph()
    node = graph.get(key)
    yield f"asset {key.to_user_string()}"
    yield f"  {node.group_name}: {', '.join(sorted(node.kinds))}"
    if node.partitions_def is not None:
        yield f"  partitions {_partitions(node.partitions_def)}"
    for dep in sorted(defs.resolve_assets_def(key).get_asset_spec(key).deps, key=lambda d: d.asset_key):
        every = " (every partition)" if isinstance(dep.partition_mapping, dg.AllPartitionMapping) else ""
        yield f"  from {dep.asset_key.to_user_string()}{every}"
    checks = sorted(check.name for check in graph.asset_check_keys if check.asset_key == key)
    if checks:
        yield f"  checks {', '.join(checks)}"
    if node.pools:
        yield f"  pool {', '.join(sorted(node.pools))}"
    if node.backfill_policy is not None:
        yield f"  backfill {node.backfill_policy.policy_type.value.lower()}"
    if node.automation_condition is not None:
        yield f"  automation {node.automation_condition.get_label() or node.automation_condition}"


def _partitions(definition: dg.PartitionsDefinition) -> str:
    if isinstance(definition, dg.TimeWindowPartitionsDefinition):
        without = f" without {definition.exclusions}" if definition.exclusions else ""
        return (
            f"{definition.cron_schedule} from {definition.start:%Y-%m-%d} {definition.timezone}{without}, "
            f"end offset {definition.end_offset}"
        )
    keys = definition.get_partition_keys()
    return f"{keys[0]} to {keys[-1]}, {len(keys)} of them"


def _sensor(graph: dg.AssetGraph, sensor: dg.SensorDefinition) -> Iterator[str]:
    yield f"sensor {sensor.name}"
    yield f"  every {sensor.minimum_interval_seconds} s, {sensor.default_status.value.lower()}"
    if sensor.asset_selection is not None:
        yield from _targets(graph, sensor.asset_selection)


def _job(graph: dg.AssetGraph, job: Any) -> Iterator[str]:
    yield f"job {job.name}"
    yield f"  {job.description}"
    yield from _targets(graph, job.selection)


def _schedule(graph: dg.AssetGraph, schedule: Any) -> Iterator[str]:
    yield f"schedule {schedule.name}"
    cron = f"{schedule.cron_schedule} {schedule.execution_timezone}"
    yield f"  {cron}, {schedule.default_status.value.lower()}"
    job = schedule.job
    selection = getattr(job, "selection", None)
    if selection is not None:
        yield from _targets(graph, selection)


def _targets(graph: dg.AssetGraph, selection: dg.AssetSelection) -> Iterator[str]:
    for key in sorted(selection.resolve(graph)):
        yield f"  starts {key.to_user_string()}"


if __name__ == "__main__":
    PICTURE.write_text(draw(definitions()), encoding="utf-8")
