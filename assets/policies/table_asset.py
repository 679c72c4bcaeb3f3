"""`table_asset`: the one pattern of every asset that writes lake tables.

A run may cover many partitions. Each is logged right after its commit, with one event per run, and a killed
run shows exactly those it committed (`recording.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from assets.policies.recording import Checks, Recorder
from assets.policies.tags import ACCEPT, ACCEPT_THINNER, BY_A_PERSON, DISPATCH, ONLY, ONLY_NEEDED, REASON
from domain.shared.partition_words import partitions_in_words
from domain.shared.table import ALL, Table
from services.partitions import Attempt, Notify

UseCase = Callable[[Any, Sequence[str], Attempt, Notify], None]
"""A use case: given the domain's service, it writes these partitions and reports each."""
Recent = Callable[[Any, str], Mapping[str, int]]


def table_asset(
    tables: Sequence[Table],
    work: UseCase,
    *,
    kinds: set[str],
    deps: Sequence[dg.AssetDep] = (),
    partitions: dg.PartitionsDefinition | None = None,
    waits: Sequence[float] = (),
    pool: str | None = None,
    checks: Checks | None = None,
    recent: Recent | None = None,
    rules: Sequence[str] = (),
) -> dg.AssetsDefinition:
    """One writer of these tables, through the resource `<domain>_service`. A run may span partitions of which
    only some are due.

    `waits`: seconds after which a step that failed is tried again. `rules`: the SQL files of the domain
    that decide the content, for the version of the code.
    """
    resource = f"{tables[0].namespace}_service"

    @dg.multi_asset(
        name=asset_key(tables[0]).to_python_identifier(),
        specs=[
            dg.AssetSpec(
                **asset_arguments(table, table.namespace, kinds, rules), deps=deps, partitions_def=partitions
            )
            for table in tables
        ],
        check_specs=checks.specs if checks else None,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run() if partitions else None,
        pool=pool,
        required_resource_keys={resource},
    )
    def write(context: dg.AssetExecutionContext) -> Any:
        this = this_attempt(context, waits)
        wanted = [str(key) for key in context.partition_keys] if partitions else [ALL]
        which = f" of {partitions_in_words(wanted)}" if partitions else ""
        why = {**BY_A_PERSON, **context.run.tags}[REASON]
        context.log.info("make %s%s (%s)", " and ".join(t.table for t in tables), which, why)
        recorder = Recorder(context, tables, checks)
        try:
            with classified(this):
                service = getattr(context.resources, resource).open()
                recorder.recent = dict(recent(service, tables[0].name)) if recent else {}
                work(service, wanted, this, recorder)
        except dg.Failure:
            yield from recorder.check_results()
            raise
        yield from recorder.results()

    return write


def this_attempt(context: dg.AssetExecutionContext, waits: Sequence[float] = ()) -> Attempt:
    return Attempt(
        context.run_id,
        context.retry_number,
        waits,
        only_needed=context.run.tags.get(ONLY) == ONLY_NEEDED,
        accept_thinner=context.run.tags.get(ACCEPT) == ACCEPT_THINNER,
        dispatch_id=context.run.tags.get(DISPATCH),
    )
