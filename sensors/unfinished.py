"""Which dispatches have a run that is not finished: the ledger must not send their work again."""

import dagster as dg

DISPATCH = "perennial/dispatch"

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
