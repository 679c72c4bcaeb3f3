"""Problems that tests inject, and what `perennial status` must say of each: its cause and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest

from tests.command import said

App = TypeVar("App")


@dataclass(frozen=True)
class Problem(Generic[App]):
    """`make` injects it; the first group of `status` then has this health, code, and words of a remedy."""

    make: Callable[[App], Mapping[str, str] | None]
    """May return variables of the environment in which `status` is asked."""
    health: str
    reason_code: str
    remedy: str
    subject: str = ""
    code: int = 0
    effects: frozenset[str] = field(default_factory=frozenset)
    """Reason codes that are shown as its effects."""


def assert_named(app: Any, problem: Problem[Any]) -> dict[str, Any]:
    """Assert that `status` names cause and remedy, also on a terminal of 80 columns and 24 lines; return its
    JSON document."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (problem.make(app) or {}).items():
            patch.setenv(name, value)
        answer = said("status", "--json")
        patch.setenv("COLUMNS", "80")
        patch.setenv("LINES", "24")
        printed = said("status")
    assert answer.out, answer.err
    document: dict[str, Any] = answer.json
    assert_first(document, problem)
    assert (answer.code, printed.code) == (problem.code, problem.code), answer.out
    lines = (printed.out or printed.err).splitlines()
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines if not printed.err), printed.out
    words = " ".join(" ".join(lines).split())
    assert problem.remedy in words, printed.out
    return document


def assert_first(document: Mapping[str, Any], problem: Problem[Any]) -> None:
    first = document["groups"][0]
    assert (first["health"], first["reason_code"]) == (problem.health, problem.reason_code), document
    assert problem.remedy in first["action"], first
    assert problem.subject in first["spans"][0]["text"], first
    assert problem.effects <= {effect["reason_code"] for effect in first["effects"]}, first
