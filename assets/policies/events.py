"""Many events of a run written in one go, where the instance's storage can."""

from contextlib import AbstractContextManager, nullcontext

import dagster as dg


def written_together(instance: dg.DagsterInstance) -> AbstractContextManager[None]:
    """Events logged inside are in the event log at its end, also if the body raises."""
    together: AbstractContextManager[None] = getattr(
        instance.event_log_storage, "one_transaction", nullcontext
    )()
    return together
