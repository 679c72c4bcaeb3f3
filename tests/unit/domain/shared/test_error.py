"""The tree of errors: what it decides, and what every error carries."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import (
    InfrastructureError,
    InvalidInput,
    PerennialError,
    PermanentRunnerError,
    TransientResourceError,
)

EVERY = (PerennialError, InvalidInput, InfrastructureError, TransientResourceError, PermanentRunnerError)


@pytest.mark.parametrize("error", EVERY)
def test_every_error_says_what_failed_why_and_what_to_do(error: type[PerennialError]) -> None:
    raised = error("daily 2026-11-17: refused", remedy="set TUSHARE_TOKEN")
    assert raised.message == str(raised) == "daily 2026-11-17: refused"
    assert raised.remedy == "set TUSHARE_TOKEN"
    assert raised.reason_code == error.reason_code


def test_what_passes_and_what_does_not_are_never_the_same() -> None:
    assert issubclass(TransientResourceError, InfrastructureError)
    assert issubclass(PermanentRunnerError, InfrastructureError)
    assert not issubclass(TransientResourceError, PermanentRunnerError)
    assert not issubclass(PermanentRunnerError, TransientResourceError)


def test_only_what_passes_may_say_how_long_to_wait() -> None:
    assert TransientResourceError("busy").retry_after is None
    assert TransientResourceError("busy", retry_after=timedelta(seconds=60)).retry_after == timedelta(
        seconds=60
    )
    with pytest.raises(TypeError):
        PermanentRunnerError("no", retry_after=timedelta(seconds=60))  # type: ignore[call-arg]
