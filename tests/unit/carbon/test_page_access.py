"""The page can be read by everybody: structure for those who listen, contrast for those who look."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

import services.carbon.page
from tests.unit.carbon.page_world import university, words


@pytest.fixture(scope="module")
def shown() -> Element:
    return university(40).shown()


def test_the_document_names_its_language_title_and_one_heading(shown: Element):
    assert shown.get("lang") == "en"
    assert shown.findtext("head/title") == "Carbon report 2025 – Example University"
    assert [words(h) for h in shown.iter("h1")] == ["Carbon report 2025"]


def test_headings_skip_no_level(shown: Element):
    levels = [int(e.tag[1]) for e in shown.iter() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_table_has_a_caption_and_every_head_its_scope(shown: Element):
    tables = list(shown.iter("table"))
    assert len(tables) > 5
    for table in tables:
        assert table[0].tag == "caption"
        assert words(table[0])
        assert {th.get("scope") for th in table.findall("thead/tr/th")} == {"col"}
        assert {row[0].get("scope") for row in table.findall("tbody/tr")} == {"row"}
        widths = {len(row) for row in table.iter("tr")}
        assert len(widths) == 1


def test_wide_tables_scroll_in_a_box_that_a_keyboard_reaches(shown: Element):
    boxes = [e for e in shown.iter("div") if e.get("class") == "scroll"]
    assert [b[0].tag for b in boxes] == ["table"] * len(list(shown.iter("table")))
    assert all(b.get("tabindex") == "0" and b.get("role") == "region" and b.get("aria-label") for b in boxes)


def test_every_picture_is_told_in_words_or_is_decoration(shown: Element):
    ids = {e.get("id"): e for e in shown.iter() if e.get("id")}
    charts = [e for e in shown.iter("svg") if e.get("aria-hidden") != "true"]
    assert len(charts) == 3
    for chart in charts:
        assert chart.get("role") == "img"
        assert ids[chart.get("aria-labelledby")].tag == "title"
        assert "scope 1" in words(ids[chart.get("aria-describedby")])


def test_every_id_is_one_and_every_reference_meets_one(shown: Element):
    counts = Counter(e.get("id") for e in shown.iter() if e.get("id"))
    assert set(counts.values()) == {1}
    wanted = {
        e.get(key) for e in shown.iter() for key in ("aria-labelledby", "aria-describedby") if e.get(key)
    }
    wanted |= {e.get("href", "")[1:] for e in shown.iter("a")}
    assert wanted <= set(counts)


def test_scopes_differ_by_pattern_and_not_by_colour_alone(shown: Element):
    patterns = {p.get("id"): [e.tag for e in p] for p in shown.iter("pattern")}
    assert patterns == {"scope2": ["rect", "rect"], "scope3": ["rect", "circle"]}
    style = shown.findtext("head/style") or ""
    assert ".f2 { fill: url(#scope2); } .f3 { fill: url(#scope3); }" in style


def themes() -> list[dict[str, str]]:
    """The light one, and the dark one with what it takes over."""
    style = Path(services.carbon.page.__file__).with_name("page.html").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w+)", root))
        for root in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    )
    return [light, light | dark]


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    shares = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark"])
def test_contrast_is_that_of_wcag_aa(theme: dict[str, str]):
    for ground in ("bg", "surface"):
        for letters in ("ink", "soft", "accent"):
            assert contrast(theme[letters], theme[ground]) >= 4.5, (letters, ground)
    for ground in ("bg", "track"):
        for scope in ("s1", "s2", "s3"):
            assert contrast(theme[scope], theme[ground]) >= 3, (scope, ground)
