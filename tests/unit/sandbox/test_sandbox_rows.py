"""The fast encoder writes what the slow one would."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sandbox import rows


@given(
    st.integers(0, 4).flatmap(
        lambda decimals: st.tuples(
            st.just(decimals), st.lists(st.integers(-(10**14), 10**14), min_size=1, max_size=30)
        )
    )
)
def test_every_number_arrives_as_it_was(case: tuple[int, list[int]]) -> None:
    decimals, scaled = case
    values = np.array(scaled) / 10**decimals
    assert json.loads(rows.encode([(values, decimals)])) == [[value] for value in values.tolist()]


@given(st.lists(st.one_of(st.none(), st.integers(-(10**9), 10**9)), min_size=1, max_size=30))
def test_missing_numbers_are_null(scaled: list[int | None]) -> None:
    values = np.array([np.nan if n is None else n / 100 for n in scaled])
    expected = [[None if n is None else n / 100] for n in scaled]
    assert json.loads(rows.encode([(values, 2)])) == expected


def test_the_result_is_compact() -> None:
    body = rows.encode([(np.array(["20261117"]), None), (np.array([-0.05]), 2), (np.array([123456.0]), 4)])
    assert body == b'[["20261117",-0.05,123456.0000]]'
