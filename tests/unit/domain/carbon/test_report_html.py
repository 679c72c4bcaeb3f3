"""The page of a report: texts do nothing, everybody can read it, and it says what is missing or old."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from domain.carbon.fallbacks import Fallback
from domain.carbon.report_state import LeftOut, ReportState
from services.carbon.report_html import THIN, render, tonnes
from services.carbon.store import YearLock
from tests.unit.domain.carbon.report_world import CATALOGUE, MOMENT, World, cells, part, university, words

TONNE = 10**9
SCRIPT = "<script>alert(1)</script>"
FORMULA = "=cmd|' /C calc'!A1"


def written_by(somebody: str) -> World:
    """A report in which each text that people wrote is this one."""
    world = World(institution=somebody, old={"waste": somebody}, notes=(somebody,))
    world.add("top", None, somebody).add(f"{somebody}2", "top", somebody)
    world.emit("top", "waste", TONNE, unmatched=1).emit(f"{somebody}2", "road", TONNE)
    world.lock = locked(somebody, somebody)
    world.factors = [{"data_entry_type": "waste", "source": somebody, "factors": 1, "stale": 0, "mg": 1}]
    file = {"kind": "data", "data_entry_type": "waste", "at": MOMENT, "rows": 1, "taken": 1}
    world.files = [file | {"file": somebody, "by": somebody}]
    return world


def locked(reason: str, by: str) -> YearLock:
    return YearLock(1, 2025, MOMENT, by, reason)


def shown_with(world: World, **known: Any) -> Element:
    view = world.view()
    return fromstring(render(replace(view, context=replace(view.context, **known))))


@pytest.mark.parametrize(
    "somebody",
    [
        SCRIPT,
        "</title><img src=x onerror=alert(1)>",
        '" onload="alert(1)',
        "]]>&amp;<!--",
        "{{ 7 * 7 }}{% x %}",
    ],
)
def test_render__of_hostile_texts__shows_them_as_text(somebody: str):
    harmless, shown = written_by("Quidam").shown(), written_by(somebody).shown()
    assert [e.tag for e in shown.iter()] == [e.tag for e in harmless.iter()]
    assert [sorted(e.keys()) for e in shown.iter()] == [sorted(e.keys()) for e in harmless.iter()]
    assert words(shown).count(somebody) == words(harmless).count("Quidam") >= 12
    assert f"{somebody} with all units below it" in words(written_by(somebody).shown("top"))


@pytest.mark.parametrize("somebody", [FORMULA, "+1+1", "-2+3", "@SUM(A1)", f"  {FORMULA}"])
def test_render__of_formulas__leaves_none_for_a_spreadsheet(somebody: str):
    shown = written_by(somebody).shown("top")
    assert words(shown).count(f"'{somebody.strip()}") >= 12
    texts = [t.strip() for e in shown.iter() if e.tag != "style" for t in (e.text, e.tail) if t]
    assert not [t for t in texts if t.startswith(("=", "@", "-"))]
    assert not [t for t in texts if t.startswith("+") and somebody.strip() in t]


def test_document__loads_and_runs_nothing_and_forbids_both():
    html = university(20).page()
    shown = fromstring(html)
    assert {e.tag for e in shown.iter()}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "form", "base"}
    )
    assert {e.get("href", "#")[0] for e in shown.iter()} == {"#"}
    assert not any(key.startswith("on") or key == "src" for e in shown.iter() for key in e.attrib)
    assert set(re.findall(r"url\((.)", html)) == {"#"}
    assert "@import" not in html
    [policy] = [
        m.get("content", "") for m in shown.iter("meta") if m.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy


@pytest.fixture(scope="module")
def large() -> Element:
    return university(40).shown()


def test_document__has_a_language_a_title_and_headings_that_skip_no_level(large: Element):
    assert large.get("lang") == "en"
    assert large.findtext("head/title") == "Carbon report 2025 – Example University"
    levels = [int(e.tag[1]) for e in large.iter() if re.fullmatch("h[1-6]", e.tag)]
    assert levels.count(1) == levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables__have_captions_scopes_and_boxes_that_a_keyboard_reaches(large: Element):
    tables = list(large.iter("table"))
    assert len(tables) > 5
    for table in tables:
        assert (table[0].tag, bool(words(table[0]))) == ("caption", True)
        assert {th.get("scope") for th in table.findall("thead/tr/th")} == {"col"}
        assert {row[0].get("scope") for row in table.findall("tbody/tr")} == {"row"}
        assert len({len(row) for row in table.iter("tr")}) == 1
    boxes = [e for e in large.iter("div") if e.get("class") == "scroll"]
    assert [box[0].tag for box in boxes] == ["table"] * len(tables)
    assert all(b.get("tabindex") == "0" and b.get("role") == "region" and b.get("aria-label") for b in boxes)


def test_charts__are_described_and_every_reference_has_its_target(large: Element):
    ids = Counter(e.get("id") for e in large.iter() if e.get("id"))
    assert set(ids.values()) == {1}
    by_id = {e.get("id"): e for e in large.iter() if e.get("id")}
    charts = [e for e in large.iter("svg") if e.get("aria-hidden") != "true"]
    assert len(charts) == 3
    for chart in charts:
        assert chart.get("role") == "img"
        assert by_id[chart.get("aria-labelledby")].tag == "title"
        assert "scope 1" in words(by_id[chart.get("aria-describedby")])
    labels = {
        e.get(key) for e in large.iter() for key in ("aria-labelledby", "aria-describedby") if e.get(key)
    }
    assert labels | {e.get("href", "")[1:] for e in large.iter("a")} <= set(ids)


def test_module_bars__are_as_long_as_their_masses():
    world = World().add("u").emit("u", "combustion", 3 * TONNE).emit("u", "electricity", TONNE)
    bars = {
        str(title.text).split(":")[0]: (rect.get("class"), rect.get("x"), rect.get("width"))
        for rect in part(world.emit("u", "road", 2 * TONNE).shown(), "modules").iter("rect")
        if (title := rect.find("title")) is not None
    }
    assert bars == {
        "Buildings, scope 1": ("f1", "0.000%", "75.000%"),
        "Buildings, scope 2": ("f2", "75.000%", "25.000%"),
        "Business travel, scope 3": ("f3", "0.000%", "50.000%"),
    }


def test_tables__of_modules_and_years__show_what_is_empty_outdated_or_zero():
    world = World(before={2022: (0, TONNE, 0), 2023: (0, 2 * TONNE, 0)}, outdated_years=(2022,))
    shown = world.add("u").emit("u", "livestock", 0, entries=3).shown()
    modules = cells(next(part(shown, "modules").iter("table")))
    assert modules["Processes"] == ["0", "0", "0", "0", "–", "0"]
    assert modules["Business travel no entries"] == ["–"] * 6
    years = cells(next(part(shown, "years").iter("table")))
    assert list(years)[1:] == ["2022 not up to date", "2023", "2024 no report", "2025"]
    assert years["2023"] == ["0", "2.000", "0", "2.000", "–", "0"]
    assert years["2024 no report"] == ["–"] * 6


def test_summary__compares_with_the_year_before():
    world = World(before={2024: (0, 2 * TONNE, 0)}).add("u").emit("u", "electricity", TONNE)
    assert "From 1 result in 1 of 7 modules. Against 2024: −50.0 %." in words(part(world.shown(), "total"))


def test_document__of_an_empty_report__is_a_page_without_years():
    shown = World().shown()
    sections = [s.get("id") for s in shown.iter("section")]
    assert sections == ["total", "modules", "units", "missing", "methods", "sources", "calculation"]
    assert [a.get("href", "")[1:] for a in shown.iter("a")] == sections


def test_unit_tree__of_any_shape__closes_each_level_and_opens_the_top_only():
    shown = part(university(300).shown(), "units")
    [top] = shown.findall("div/ul/li/details")
    assert [d for d in shown.iter("details") if d.get("open") is not None] == [top]
    chain = World().add("0")
    for n in range(1, 1_500):
        chain.add(str(n), str(n - 1))
    html = chain.page()
    assert html.count("<details open") == 1
    assert html.count("<details") == html.count("</details>") == 1_499


def badges(shown: Element) -> list[str]:
    [found] = [e for e in shown.iter("ul") if e.get("class") == "state"]
    return [words(item) for item in found]


@pytest.fixture
def whole() -> World:
    """A report with entries in every module: nothing is missing."""
    world = World().add("u")
    for module in CATALOGUE.modules:
        world.emit("u", module.types[-1].emissions[0].name, TONNE)
    return world


def test_document__of_a_whole_report__says_that_nothing_is_missing(whole: World):
    assert badges(whole.shown()) == ["Not locked", "Every entry has a factor", "Up to date"]
    assert [e.tag for e in part(whole.shown(), "missing")] == ["h2", "p", "p"]


@pytest.mark.parametrize(
    ("state", "badge", "said"),
    [
        (
            ReportState(2025, left_out=(LeftOut("plane", "2 of 3 rows of =p.csv"),)),
            "Made without",
            "Flights : 2 of 3",
        ),
        (
            ReportState(2025, silent={"manual": MOMENT}),
            "as far as is known",
            "manual has not answered since 2026-03-02",
        ),
        (ReportState(2025, altered="rows differ"), "Not what was calculated", "rows differ"),
    ],
    ids=["left out", "silent", "altered"],
)
def test_document__of_an_incomplete_report__says_what_is_missing(
    whole: World, state: ReportState, badge: str, said: str
):
    shown = shown_with(whole, state=state)
    assert badge in badges(shown)[2]
    assert said in words(part(shown, "missing"))
    assert len(part(shown, "missing").findall("h3")) == 1


def test_document__of_a_locked_year__says_by_whom_when_and_why(whole: World):
    whole.lock = locked("published in the annual report", "a.keller")
    said = "Locked by a.keller on 2 March 2026, 14:05 UTC : published in the annual report."
    assert said in words(part(whole.shown(), "missing"))
    assert badges(whole.shown())[0] == "Locked"


def test_document__of_a_past_moment__claims_nothing_of_today(whole: World):
    shown = shown_with(whole, as_of=MOMENT.replace(year=2025))
    assert badges(shown) == ["As it was on 2 March 2025, 14:05 UTC", "Every entry has a factor"]
    assert "ocked" not in words(part(shown, "missing"))


def test_document__with_unmatched_entries__names_what_no_factor_matches(whole: World):
    row = {"data_entry_type": "plane", "emission_type": "flight_co2", "entries": 7, "kinds": 31}
    whole.unmatched = [row | {"classification": '{"cabin":"=first","haul":"long"}'}]
    missing = part(whole.emit("u", "hotel", 0, entries=9, unmatched=9).shown(), "missing")
    counts, unmatched = missing.iter("table")
    assert cells(counts)["Hotel nights"] == ["10", "9", "0"]
    assert cells(unmatched)["Flights flight co2"] == ["cabin =first, haul long", "7"]
    assert "the 1 most frequent of 31" in words(unmatched[0])


def test_document__with_fallback_factors__names_them_and_their_part_of_the_total(whole: World):
    mg = whole.report().total_mg // 4
    words_of = [('{"country":"=X"}', '{"country":"world"}')] * 21
    whole.fallbacks = tuple(Fallback("train", *pair, 3, 3, mg // 21) for pair in words_of)
    shown = whole.shown()
    assert "25.0 % with a fallback factor" in badges(shown)[2]
    missing = part(shown, "missing")
    assert words(missing.findall("h3")[0]) == "Counted with a fallback factor"
    [table] = missing.iter("table")
    assert "the 20 heaviest of 21" in words(table[0])
    assert cells(table)["Train journeys"] == ["country =X as world", "0.083", "3"]


def test_document__with_notes_files_and_versions__shows_them(whole: World):
    whole.notes = ("old in this report: plane", "units 2025 is not up to date: a new file")
    file = {"kind": "data", "data_entry_type": "plane", "file": "p.csv", "by": "eve", "at": MOMENT}
    whole.files = [file | {"rows": 3000, "taken": 1000}]
    shown = whole.shown()
    assert [words(li) for li in part(shown, "missing").findall("details/ul/li")] == list(whole.notes)
    files, versions = part(shown, "calculation").iter("table")
    assert cells(files)["Flights"] == ["p.csv", "1 000 of 3 000", "eve", "2 March 2026, 14:05 UTC"]
    assert cells(versions)["units 2025"] == ["91ab20c4e7710f3d"]


@pytest.mark.parametrize(
    ("mg", "decimals", "shown"),
    [
        (0, 3, "0"),
        (1, 3, f"<{THIN}0.001"),
        (500_000, 3, "0.000"),
        (500_001, 3, "0.001"),
        (12_345 * TONNE + 50_000_000, 1, f"12{THIN}345.0"),
        (12_345 * TONNE + 50_000_001, 1, f"12{THIN}345.1"),
        (9_007_199_254_740_993, 1, f"9{THIN}007{THIN}199.3"),
        (-1_500 * TONNE, 2, f"−1{THIN}500.00"),
    ],
)
def test_tonnes__are_rounded_from_whole_milligrams(mg: int, decimals: int, shown: str):
    assert tonnes(mg, decimals) == shown
