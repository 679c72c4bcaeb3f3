"""A run that somebody ends is over: its steps are not tried again, and no further one begins."""

import dagster as dg
import pytest

from assets.policies.retries import ListedRetryPolicy


@pytest.mark.parametrize(("error", "tries"), [(KeyboardInterrupt, 1), (OSError, 3)])
def test_retry_policy__step_is_interrupted_or_fails__tries_again_only_after_an_error(
    error: type[BaseException], tries: int
) -> None:
    tried: list[str] = []

    @dg.asset(retry_policy=ListedRetryPolicy([0.0, 0.0]))
    def first() -> None:
        tried.append("first")
        raise error

    @dg.asset(deps=[first])
    def second() -> None:
        tried.append("second")

    job = dg.Definitions([first, second]).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        assert not job.execute_in_process(instance=instance, raise_on_error=False).success
        assert instance.get_runs()[0].status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
    assert tried == ["first"] * tries
