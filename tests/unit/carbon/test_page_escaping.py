"""Whatever people wrote is shown as they wrote it and does nothing: in a browser, a spreadsheet, a mail."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree.ElementTree import fromstring

import pytest

from services.carbon.page import Lock, page
from services.carbon.page_markup import Html, tag, text
from tests.unit.carbon.page_world import MOMENT, World, part, university, words

SCRIPT = "<script>alert(1)</script>"
FORMULA = "=cmd|' /C calc'!A1"


def written_by(somebody: str) -> World:
    """Each text that comes from people is this one."""
    world = World(institution=somebody, old={"waste": somebody}, notes=(somebody,))
    world.add("top", None, somebody).add(f"{somebody}2", "top", somebody)
    world.emit("top", "waste", 10**9, unmatched=1).emit(f"{somebody}2", "road", 10**9)
    world.lock = Lock(somebody, somebody, MOMENT)
    world.factors = [{"data_entry_type": "waste", "source": somebody, "factors": 1, "stale": 0, "mg": 1}]
    return world


@pytest.mark.parametrize(
    "somebody",
    [SCRIPT, "</title><img src=x onerror=alert(1)>", '" onload="alert(1)', "]]>&amp;<!--", "$title ${x}"],
)
def test_what_people_wrote_is_text_and_never_markup(somebody: str):
    harmless, shown = written_by("Quidam").shown(), written_by(somebody).shown()
    assert [e.tag for e in shown.iter()] == [e.tag for e in harmless.iter()]
    assert [sorted(e.keys()) for e in shown.iter()] == [sorted(e.keys()) for e in harmless.iter()]
    assert words(shown).count(somebody) == words(harmless).count("Quidam") >= 10


def test_the_name_of_the_reports_unit_is_text_too():
    shown = written_by(SCRIPT).shown("top")
    assert not list(shown.iter("script"))
    assert f"{SCRIPT} with all units below it" in words(shown)


@pytest.mark.parametrize("somebody", [FORMULA, "+1+1", "-2+3", "@SUM(A1)", f"  {FORMULA}"])
def test_no_text_is_a_formula_when_it_is_copied_into_a_spreadsheet(somebody: str):
    shown = written_by(somebody).shown("top")
    assert words(shown).count(f"'{somebody.strip()}") >= 10
    said = [t.strip() for e in shown.iter() if e.tag != "style" for t in (e.text, e.tail) if t]
    assert not [t for t in said if t.startswith(("=", "@", "-"))]
    assert not [t for t in said if t.startswith("+") and somebody.strip() in t]


def test_characters_no_document_may_have_are_replaced():
    shown = written_by("a\x00b\x1bc\uffffd").shown()
    assert "a�b�c�d" in words(part(shown, "units"))


def test_the_name_of_a_unit_cannot_turn_the_numbers_beside_it_around():
    world = written_by("\N{RIGHT-TO-LEFT OVERRIDE}0.1 t")
    names = [b for b in part(world.shown(), "units").iter("bdi") if "\N{RIGHT-TO-LEFT OVERRIDE}" in words(b)]
    assert len(names) == 3


def test_versions_are_text():
    world = written_by("Quidam")
    data = replace(world.data(), versions={SCRIPT: SCRIPT})
    assert not list(fromstring(page(world.report(), data)).iter("script"))


def test_the_page_loads_nothing_runs_nothing_and_forbids_both():
    html = university(20).page()
    shown = fromstring(html)
    assert {e.tag for e in shown.iter()}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "form", "base"}
    )
    assert {e.get("href", "#")[0] for e in shown.iter()} == {"#"}
    assert not any(key.startswith("on") or key == "src" for e in shown.iter() for key in e.attrib)
    assert set(re.findall(r"url\((.)", html)) == {"#"}
    assert "@import" not in html
    (policy,) = (
        m.get("content", "") for m in shown.iter("meta") if m.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy


def test_only_what_tag_made_is_markup():
    made = tag("b", "a<b", class_='"x"', aria_hidden=None, open=True, data_n=0)
    assert made == '<b class="&quot;x&quot;" open="" data-n="0">a&lt;b</b>'
    assert tag("p", made, " & ") == f"<p>{made} &amp; </p>"
    assert text(made) is made
    assert isinstance(text("x"), Html)
