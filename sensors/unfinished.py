"""The work of runs that are not finished: the ledger must not dispatch it again."""

import dagster as dg

from assets.policies.tags import DISPATCH
from domain.shared.table import ALL

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def unfinished_dispatches(instance: dg.DagsterInstance) -> set[str]:
    runs = instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED))
    return {run.tags[DISPATCH] for run in runs if DISPATCH in run.tags}


def keys_under_way(instance: dg.DagsterInstance) -> set[str]:
    """Return the `table:partition` keys that dispatched runs did or will do before they end."""
    runs = instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED))
    return {
        f"{key.path[-1]}:{run.tags.get('dagster/partition', ALL)}"
        for run in runs
        if DISPATCH in run.tags
        for key in run.asset_selection or ()
    }
