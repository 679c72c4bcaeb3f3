"""What starts runs in every domain: a sensor or a schedule that does one reconcile pass.

A tick says what it found: it logs the runs that it starts, or says in its skip reason why it starts none.
The log of a tick is a file for ever, so one that starts nothing logs nothing.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets.policies.tags import DISPATCH, LONGEST_REASON, ONLY, ONLY_NEEDED, PIPELINE, PULLS, REASON
from domain.shared.partition_words import partitions_in_words, reasons_in_words
from domain.shared.table import ALL
from domain.shared.verdict import Plan
from resources.ledger.transitions import REDISPATCH
from services.reconcile import Reconciler, Reconciliation, RunStart, Unfinished, reconcile

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

LOOKED_BACK = 100
"""Failed runs of late that are looked at."""


def unfinished(instance: dg.DagsterInstance) -> Unfinished:
    """What the dispatched runs that have not ended are doing: the ledger must not dispatch it again."""
    found = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
    runs = [run for run in found if DISPATCH in run.tags]
    keys = (
        f"{key.path[-1]}:{run.tags.get('dagster/partition', ALL)}"
        for run in runs
        for key in run.asset_selection or ()
    )
    return Unfinished(
        frozenset(run.tags[DISPATCH] for run in runs),
        frozenset(keys),
        frozenset(run.run_id for run in found),
        frozenset(run.tags[PULLS] for run in runs if PULLS in run.tags),
    )


def resting(instance: dg.DagsterInstance, now: datetime) -> frozenset[str]:
    """The pulled kinds whose last run failed a moment ago; after each failure of late for longer.

    Work that a failed run had leased waits by itself. This is for runs that fail before they lease any:
    nothing else would keep the next pass from starting another one.
    """
    ended = instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=now - REDISPATCH.cap),
        limit=LOOKED_BACK,
    )
    kinds = [(one.dagster_run.tags.get(PULLS), one.update_timestamp) for one in ended]
    failures = Counter(kind for kind, _ in kinds if kind)
    return frozenset(kind for kind, at in kinds if kind and now < at + REDISPATCH.delay(failures[kind] - 1))


def _unfinished_or_resting(instance: dg.DagsterInstance) -> Unfinished:
    found = unfinished(instance)
    return replace(found, pulling=found.pulling | resting(instance, datetime.now(UTC)))


def reconcile_sensor(
    name: str,
    resource: str,
    reconciler: Callable[[Any], Reconciler],
    assets: dg.AssetSelection,
    description: str,
) -> dg.SensorDefinition:
    """A sensor over the domain that the resource opens."""

    @dg.sensor(
        name=name,
        # Not `target`: a job of its own could not span assets with different partitions.
        asset_selection=assets,
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=description,
        required_resource_keys={resource},
    )
    def tick(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = reconcile(reconciler(_opened(context, resource)), _unfinished_or_resting(context.instance))
        requests = _requests(context, found)
        return dg.SensorResult(
            run_requests=requests, skip_reason=None if requests else nothing_to_start(found)
        )

    return tick


def reconcile_schedule(
    name: str,
    resource: str,
    reconciler: Callable[[Any], Reconciler],
    assets: dg.AssetSelection,
    description: str,
    *,
    cron: str,
    timezone: str,
    note: Callable[[Any], str] = lambda _: "",
) -> dg.ScheduleDefinition:
    """A schedule that does the sensor's pass. `note` comes before the reason why nothing starts."""

    @dg.schedule(
        name=name,
        target=assets,
        cron_schedule=cron,
        execution_timezone=timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=description,
        required_resource_keys={resource},
    )
    def tick(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        service = _opened(context, resource)
        found = reconcile(reconciler(service), _unfinished_or_resting(context.instance))
        requests = _requests(context, found)
        return requests or dg.SkipReason(note(service) + nothing_to_start(found))

    return tick


def _requests(
    context: dg.SensorEvaluationContext | dg.ScheduleEvaluationContext, found: Reconciliation
) -> list[dg.RunRequest]:
    if found.starts:
        context.log.info("found %s", states_in_words(found.plan))
    for start in found.starts:
        made = "" if start.partitions == (ALL,) else f" of {partitions_in_words(start.partitions)}"
        context.log.info("start a run%s (%s): %s", made, start.reason, ", ".join(start.tables))
    return [run_request(start) for start in found.starts]


def _opened(context: dg.SensorEvaluationContext | dg.ScheduleEvaluationContext, resource: str) -> Any:
    return getattr(context.resources, resource).open()


def run_request(start: RunStart) -> dg.RunRequest:
    """The run that does all partitions of a start; many of them as the range that holds them."""
    tags = {
        DISPATCH: start.dispatch_id,
        REASON: start.reason[:LONGEST_REASON],
        "dagster/priority": str(start.priority),
    }
    if start.pulls:
        tags[PULLS] = start.pulls
    if start.pipelines:
        tags[PIPELINE] = start.pipelines[-1]
    partition = None
    if len(start.partitions) == 1:
        partition = None if start.partitions == (ALL,) else start.partitions[0]
    else:
        first, last = start.span
        tags |= {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        tags[ONLY] = ONLY_NEEDED  # the range may hold partitions that are whole
    return dg.RunRequest(
        run_key=start.dispatch_id,
        partition_key=partition,
        asset_selection=[dg.AssetKey([start.namespace, name]) for name in start.tables],
        tags=tags,
    )


def nothing_to_start(found: Reconciliation) -> str:
    """Why a pass starts no run, in plain words."""
    due = found.plan.due
    if not due:
        return f"nothing is due: {states_in_words(found.plan)}"
    later = [v for v in due if v.key not in found.left]
    parts = [f"{len(found.left)} partitions are in unfinished runs"] if found.left else []
    if later:
        why = reasons_in_words((v.reason_code, v.partition) for v in later)
        parts.append(f"{len(later)} partitions wait for their next attempt ({why})")
    return "; ".join(parts)


def states_in_words(plan: Plan) -> str:
    """How many partitions are in which state: "all 42 partitions are healthy", "38 healthy, 4 waiting"."""
    counted = Counter(verdict.state for verdict in plan.verdicts).most_common()
    if len(counted) == 1:
        return f"all {counted[0][1]} partitions are {counted[0][0]}"
    return ", ".join(f"{count} {state}" for state, count in counted) or "no partition is known yet"
