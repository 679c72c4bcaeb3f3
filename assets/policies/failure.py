"""How a domain error becomes a Dagster failure: retried inside the run only where that helps."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from domain.shared.error import PerennialError, TransientResourceError


@contextmanager
def classified(final: bool = True) -> Iterator[None]:
    """Let the op's retry policy see only what seconds can heal; everything else ends the step at once.

    Unclassified exceptions end it too: the ledger spaces their few attempts. After the `final` pass the error
    is the step's own failure; left to the policy, the step would only say that its retries are used up.
    """
    try:
        yield
    except TransientResourceError as error:
        if not final and error.retry_in_run:
            raise
        raise _failure(error) from error
    except PerennialError as error:
        raise _failure(error) from error
    except dg.Failure:
        raise
    except Exception as error:
        raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False) from error


def _failure(error: PerennialError) -> dg.Failure:
    metadata = {"reason": error.reason_code, **({"remedy": error.remedy} if error.remedy else {})}
    return dg.Failure(error.message, metadata=metadata, allow_retries=False)
