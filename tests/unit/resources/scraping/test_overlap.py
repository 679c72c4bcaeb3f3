"""A time some hours before another, written as the source writes its times."""

from __future__ import annotations

import pytest

from resources.scraping.overlap import earlier


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-18T12:00:00Z", "2026-11-17T12:00:00Z"),
        ("2026-11-18T12:00:00.250Z", "2026-11-17T12:00:00.250Z"),
        ("2026-11-18 12:00:00.123456", "2026-11-17 12:00:00.123456"),
        ("2026-11-18T12:00:00+08:00", "2026-11-17T12:00:00+08:00"),
        ("2026-11-18", "2026-11-17"),
        ("1763366400", "1763280000"),
        ("1763366400000", "1763280000000"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("20261118T120000Z", "20261118T120000Z"),
        ("4711", "4711"),
        ("AoJ2-x", "AoJ2-x"),
    ],
)
def test_earlier__a_day_before__has_the_same_form(text: str, expected: str):
    assert earlier(text, 24) == expected


def test_earlier__day_without_a_time__goes_back_whole_days():
    assert (earlier("2026-11-18", 1), earlier("2026-11-18", 0)) == ("2026-11-17", "2026-11-18")
