"""A run that somebody ends is over: its steps are not tried again, and no further one begins."""

import dagster as dg
import pytest

from assets.policies.failure import classified
from domain.shared.error import TransientResourceError
from services.partitions import Attempt


@pytest.mark.parametrize(("error", "tries"), [(KeyboardInterrupt(), 1), (TransientResourceError("busy"), 3)])
def test_step__is_interrupted_or_fails__is_tried_again_only_after_an_error(
    error: BaseException, tries: int
) -> None:
    tried: list[str] = []

    @dg.asset
    def first(context: dg.AssetExecutionContext) -> None:
        tried.append("first")
        with classified(Attempt("run", context.retry_number, [0.0, 0.0])):
            raise error

    @dg.asset(deps=[first])
    def second() -> None:
        tried.append("second")

    job = dg.Definitions([first, second]).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        assert not job.execute_in_process(instance=instance, raise_on_error=False).success
        assert instance.get_runs()[0].status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
    assert tried == ["first"] * tries


@pytest.mark.parametrize(
    ("error", "stacked"),
    [(TransientResourceError("daily: HTTP 503"), False), (ZeroDivisionError("a mistake of ours"), True)],
)
def test_step__fails_as_expected_or_not__shows_one_line_or_the_stack(error: Exception, stacked: bool) -> None:
    @dg.asset
    def first() -> None:
        with classified():
            raise error

    job = dg.Definitions([first]).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, raise_on_error=False)
    [failure] = [e.step_failure_data for e in result.all_events if e.is_step_failure]
    assert failure.error is not None
    assert bool(failure.error.stack) == bool(failure.error.cause) == stacked
    if not stacked:
        assert failure.error.to_string() == "daily: HTTP 503"
