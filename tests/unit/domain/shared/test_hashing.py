"""Digests that mean the same tomorrow, in another process, on another machine."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.shared.hashing import digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def test_digest__known_value__never_changes() -> None:
    """Fingerprints are stored: another digest would ask for all work again."""
    assert digest({"table": "normalized_daily", "rows": 1, "name": "平安银行"}) == "cee161f2a5b60753"


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=5))
def test_digest__keys_in_another_order__is_equal(value: dict[str, Any]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, "1"), (None, "None"), (True, 1), ([], {}), (["a", "b"], ["ab"]), ("", None), ({"a": None}, {})],
)
def test_digest__different_values__differ(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_digest__tuples_and_dates__equal_lists_and_texts() -> None:
    assert digest((1, 2)) == digest([1, 2])
    assert digest(date(2026, 11, 17)) == digest("2026-11-17")
