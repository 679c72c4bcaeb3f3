"""How a domain error becomes a Dagster failure: one line, retried inside the run where that helps."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster_shared.error import SerializableErrorInfo

from assets.policies.dagster_private import DagsterUserCodeProcessError
from domain.shared.error import PerennialError, TransientResourceError
from services.partitions import Attempt

ONCE = Attempt("")


@contextmanager
def classified(this: Attempt = ONCE) -> Iterator[None]:
    """Have the step tried again after the attempt's wait where seconds can heal; anything else ends it.

    An error that the platform knows is one line: its stack says nothing that the message does not. Of any
    other exception the stack is shown, and the ledger spaces its few attempts.
    """
    try:
        yield
    except TransientResourceError as error:
        if not this.final and error.retry_in_run:
            raise AnotherPass(error, len(this.waits), this.wait) from error
        raise ExpectedFailure(error) from error
    except PerennialError as error:
        raise ExpectedFailure(error) from error
    except dg.Failure:
        raise
    except Exception as error:
        raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False) from error


class _OneLine(DagsterUserCodeProcessError):
    """Shown by what it says instead of its frames: Dagster lets this class of errors alone say how."""

    def __init__(self, *arguments: object) -> None:
        Exception.__init__(self, *arguments)

    def says(self, error: PerennialError) -> None:
        line = SerializableErrorInfo(error.message, [], type(error).__name__)
        self.user_code_process_error_infos = [line]


class ExpectedFailure(dg.Failure, _OneLine):
    """The failure of a step by an error that the platform knows."""

    def __init__(self, error: PerennialError) -> None:
        metadata = {"reason": error.reason_code, **({"remedy": error.remedy} if error.remedy else {})}
        super().__init__(error.message, metadata=metadata, allow_retries=False)
        self.says(error)


class AnotherPass(dg.RetryRequested, _OneLine):
    """The request to try a step again, with the error of this pass."""

    def __init__(self, error: PerennialError, passes: int, seconds: float) -> None:
        super().__init__(max_retries=passes, seconds_to_wait=seconds)
        self.says(error)
