"""A run that somebody ends is over: its steps are not tried again, and no further one begins."""

import dagster as dg
import pytest

from assets.policies.retries import ListedRetryPolicy

# Dagster's own is private, and a subclass of nothing that `except Exception` catches: as this one is.
ENDINGS = (KeyboardInterrupt,)


@pytest.mark.parametrize("ending", ENDINGS)
def test_retry__interrupted_step__is_not_tried_again(ending: type[BaseException]):
    tried: list[str] = []

    @dg.asset(retry_policy=ListedRetryPolicy([0.0, 0.0]))
    def first() -> None:
        tried.append("first")
        raise ending

    @dg.asset(retry_policy=ListedRetryPolicy([0.0]))
    def other() -> None:
        tried.append("other")

    job = dg.Definitions([first, other]).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        ended = job.execute_in_process(instance=instance, raise_on_error=False)
        assert not ended.success
        assert instance.get_runs()[0].status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
    assert tried == ["first"]


def test_retry__failed_step__is_tried_again():
    tried: list[str] = []

    @dg.asset(retry_policy=ListedRetryPolicy([0.0, 0.0]))
    def shaky() -> None:
        tried.append("shaky")
        raise OSError("not yet")

    job = dg.Definitions([shaky]).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    assert len(tried) == 3
