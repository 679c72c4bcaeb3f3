"""What an error means for the work it ended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import (
    InfrastructureError,
    InvalidInput,
    PermanentRunnerError,
    TransientResourceError,
)
from resources.ledger.outcome import ERROR_LIMIT, cause_of, outcome_of


def chained(outer: Exception, inner: Exception) -> Exception:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "verb", "kind"),
    [
        (TransientResourceError("x"), "defer", "transient"),
        (PermanentRunnerError("x"), "fail", "permanent"),
        (InvalidInput("x"), "fail", "invalid_input"),
        (InfrastructureError("x"), "defer", "unclassified"),
        (ValueError("x"), "defer", "unclassified"),
        (chained(RuntimeError("step"), InvalidInput("x")), "fail", "invalid_input"),
        (chained(RuntimeError("step"), KeyError("x")), "defer", "unclassified"),
        (KeyboardInterrupt(), "release", None),
        (GeneratorExit(), "release", None),
    ],
)
def test_outcome_of__error__decides_by_its_type(error, verb, kind):
    outcome = outcome_of(error)
    assert (outcome.verb, outcome.cause and outcome.cause.kind) == (verb, kind)


def test_cause_of__transient_error__has_its_reason_and_wait():
    error = TransientResourceError("x", reason_code="rate_limited", retry_after=timedelta(seconds=7))
    cause = cause_of(error)
    assert (cause.reason_code, cause.retry_after) == ("rate_limited", timedelta(seconds=7))


def test_cause_of__plain_text__is_of_the_given_kind():
    assert cause_of("down").kind == "transient"
    assert cause_of("down", otherwise="permanent").kind == "permanent"


UNREADABLE = "no JSON: \x1f\x8b\0 \ud800\n\tthe\u00a0source\u3000says\x1b[2J"


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (InvalidInput("no calendar", remedy="fetch it"), "no calendar\nfetch it"),
        (UNREADABLE, "no JSON: \ufffd\ufffd\ufffd \ufffd\nthe\u00a0source\u3000says\ufffd[2J"),
        ("a\tb", "a\tb"),
        ("\n  first \n\n second \n", "first\nsecond"),
        ("x" * 99_999, "x" * (ERROR_LIMIT - 1) + "…"),
        ("", "no message"),
        (ValueError(), "ValueError:"),
    ],
    ids=["remedy", "unreadable", "tab", "lines", "long", "empty", "no message"],
)
def test_cause_of__message__is_kept_printable_and_limited(error, kept):
    assert cause_of(error).error == kept
