"""Charts in metadata are well-formed, small, and hold whatever numbers there are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from base64 import b64decode

import pytest

from assets.policies.charts import BARS_SHOWN, COLUMNS_SHOWN, SHOWN_AT_ONCE, bar_chart, column_chart


def drawn(chart: str) -> ET.Element:
    found = re.fullmatch(r"!\[plot\]\(data:image/svg\+xml;base64,([^)]+)\)", chart)
    assert found is not None
    return ET.fromstring(b64decode(found[1]))


def texts(chart: str) -> list[str]:
    return [node.text or "" for node in drawn(chart).iter() if node.text]


@pytest.mark.parametrize("value", [0.0, -3.0, 1e300])
def test_bar_chart__of_too_many_parts__shows_the_first_and_counts_the_rest(value: float) -> None:
    parts = [(f"<{n}> a very long name, longer than its place" * 2, value) for n in range(BARS_SHOWN + 5)]
    chart = bar_chart(parts, {parts[0][0]: 1.0}, "t CO2e")
    *shown, last = texts(chart)
    assert 5 <= len(shown) <= BARS_SHOWN
    assert shown[0].startswith("<0> a very long n…")
    assert last == f"t CO2e +{len(parts) - len(shown)} more"
    assert len(chart) < SHOWN_AT_ONCE


def test_bar_chart__of_changed_parts__marks_where_each_bar_ended_before() -> None:
    bars, marks = (
        path.get("d") for path in drawn(bar_chart([("a", 2), ("b", 1)], {"a": 1, "b": 1})).findall("{*}path")
    )
    assert (bars, marks) == ("M170 7h130M170 21h65", "M235 1v12")


def test_column_chart__of_too_many_days__shows_the_last() -> None:
    days = [(f"2026-11-{n}", float(n)) for n in range(COLUMNS_SHOWN + 5)]
    chart = column_chart(days)
    assert texts(chart) == ["2026-11-5", f"2026-11-{COLUMNS_SHOWN + 4}"]
    assert len(chart) < SHOWN_AT_ONCE
    assert texts(column_chart([("<today>", 0.0)])) == ["<today>", "<today>"]


def test_charts__of_nothing__are_no_text() -> None:
    assert bar_chart([]) == column_chart([]) == ""
