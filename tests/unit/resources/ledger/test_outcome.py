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
from resources.ledger.model import LeasedElsewhere, LeaseLost
from resources.ledger.outcome import ERROR_LIMIT, cause_of, outcome_of


def chained(outer: Exception, inner: Exception) -> Exception:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "verb", "kind"),
    [
        (TransientResourceError("x"), "defer", "transient"),
        (LeasedElsewhere("x"), "defer", "transient"),
        (LeaseLost("x"), "defer", "transient"),
        (PermanentRunnerError("x"), "fail", "permanent"),
        (InvalidInput("x"), "fail", "invalid_input"),
        (InfrastructureError("x"), "defer", "unclassified"),
        (ValueError("x"), "defer", "unclassified"),
        (chained(RuntimeError("step"), InvalidInput("x")), "fail", "invalid_input"),
        (chained(RuntimeError("step"), KeyError("x")), "defer", "unclassified"),
    ],
)
def test_an_error_decides_by_its_type(error, verb, kind):
    outcome = outcome_of(error)
    assert (outcome.verb, outcome.cause.kind) == (verb, kind)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(0), GeneratorExit()])
def test_an_interrupt_is_nobodys_fault(error):
    assert outcome_of(error).verb == "release"
    assert outcome_of(error).cause is None


def test_the_reason_and_the_wait_come_from_the_error():
    error = TransientResourceError("x", reason_code="rate_limited", retry_after=timedelta(seconds=7))
    cause = cause_of(error)
    assert (cause.reason_code, cause.retry_after) == ("rate_limited", timedelta(seconds=7))


def test_a_remedy_follows_the_message():
    assert cause_of(InvalidInput("no calendar", remedy="fetch it")).error == "no calendar\nfetch it"


def test_words_alone_are_what_the_caller_says():
    assert cause_of("down").kind == "transient"
    assert cause_of("down", otherwise="permanent").kind == "permanent"


def test_what_cannot_be_seen_is_kept_as_a_mark_but_for_spaces():
    words = "no JSON: \x1f\x8b\0 \ud800\n\tthe\u00a0source\u3000says\x1b[2J"
    assert cause_of(words).error == "no JSON: \ufffd\ufffd\ufffd \ufffd\nthe\u00a0source\u3000says\ufffd[2J"
    assert cause_of("a\tb").error == "a\tb"


def test_an_error_is_kept_first_line_first_and_of_bearable_length():
    assert cause_of("\n  first \n\n second \n").error == "first\nsecond"
    assert len(cause_of("x" * 99_999).error) == ERROR_LIMIT
    assert cause_of("").error == "no message"
    assert cause_of(ValueError()).error == "ValueError:"
