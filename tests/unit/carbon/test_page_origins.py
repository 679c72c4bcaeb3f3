"""Where numbers come from, what is missing in them and whether they may still change: all of it is said."""

from __future__ import annotations

from dataclasses import replace
from xml.etree.ElementTree import Element, fromstring

import pytest

from domain.carbon.standing import LeftOut, Standing
from services.carbon.page import Lock, page, page_data
from tests.unit.carbon.page_world import CATALOGUE, MOMENT, World, part, words

RESULT = ("data_entry_type", "emission_type", "mg", "entries", "unmatched", "overridden")


@pytest.fixture
def world() -> World:
    return World().add("u").emit("u", "flight_non_co2", 2 * 10**9).emit("u", "flight_co2", 10**9, entries=4)


def whole(world: World) -> World:
    """With entries in every module, so that nothing is missing."""
    for module in CATALOGUE.modules:
        world.emit("u", module.types[-1].emissions[0].name, 10**9)
    return world


def standing(shown: Element) -> list[str]:
    (found,) = (e for e in shown.iter("ul") if e.get("class") == "standing")
    return [words(item) for item in found]


def test_each_type_with_results_has_its_method_and_no_other(world: World):
    methods = part(world.shown(), "methods")
    (found,) = methods.iter("details")
    said, plane = words(found), CATALOGUE.type("plane")
    assert said.startswith("Flights 3.000 t CO₂e")
    assert plane.formula in said
    assert plane.description in said
    assert plane.method.split("`")[0] in said
    assert "`" not in said
    assert [h.text for h in methods.iter("h3")] == ["Business travel"]


def test_kinds_of_emissions_stand_in_the_catalogues_order_with_scope_and_category(world: World):
    (found,) = part(world.shown(), "methods").iter("tbody")
    assert [[words(state) for state in row] for row in found] == [
        ["flight co2", "3", "6 business travel", "4", "1.000"],
        ["flight non co2", "3", "6 business travel", "1", "2.000"],
    ]


def test_sources_are_told_and_so_is_that_there_is_none(world: World):
    rows = [("road", None, 1, 0, 0), ("plane", "Handbook 4.2", 3, 1, 10**9)]
    names = ("data_entry_type", "source", "factors", "stale", "mg")
    world.factors = [dict(zip(names, row, strict=True)) for row in rows]
    (found,) = part(world.shown(), "sources").iter("tbody")
    assert [[words(state) for state in row] for row in found] == [
        ["Flights", "Handbook 4.2", "3", "1", "1.000"],
        ["Cars and coaches", "no source given", "1", "0", "0"],
    ]


def test_files_are_told_with_who_brought_them_and_when(world: World):
    names = ("kind", "data_entry_type", "file", "rows", "taken", "by", "at")
    rows = [
        ("units", "", "units.csv", 12, 12, "anna", MOMENT),
        ("data", "plane", "=cmd().csv", 4000, 4000, "@bob", MOMENT),
    ]
    world.files = [dict(zip(names, row, strict=True)) for row in rows]
    found = next(part(world.shown(), "calculation").iter("tbody"))
    told = [[words(state) for state in row] for row in found]
    assert [row[:4] for row in told] == [
        ["Units", "units.csv", "12", "anna"],
        ["Flights", "'=cmd().csv", "4 000", "'@bob"],
    ]
    assert all(row[4].endswith("UTC") for row in told)


def test_of_a_file_in_part_the_page_says_how_much_of_it_is_in_the_figures(world: World):
    world.files = [
        {"kind": "data", "data_entry_type": "plane", "file": "p.csv", "by": "eve", "at": MOMENT}
        | {"rows": 3000, "taken": 1000}
    ]
    (row,) = next(part(world.shown(), "calculation").iter("tbody"))
    assert [words(state) for state in row][:3] == ["Flights", "p.csv", "1 000 of 3 000"]


def test_what_was_left_out_is_missing_and_the_figures_are_not_called_up_to_date(world: World):
    standing_then = Standing(2025, left_out=(LeftOut("plane", "2 of 3 rows of =p.csv were left out"),))
    shown = fromstring(page(whole(world).report(), replace(world.data(), standing=standing_then)))
    assert "Flights : 2 of 3 rows of =p.csv were left out" in words(part(shown, "missing"))
    assert "Nothing is known to be missing" not in words(part(shown, "missing"))
    assert standing(shown)[2] == "Made without what was left out"


def test_an_application_that_does_not_answer_is_told_on_the_page(world: World):
    silent = replace(world.data(), standing=Standing(2025, silent={"manual": MOMENT}))
    shown = fromstring(page(whole(world).report(), silent))
    assert "manual has not answered since 2026-03-02 14:05 UTC" in words(part(shown, "missing"))
    assert "Nothing is known to be missing" not in words(part(shown, "missing"))
    assert standing(shown)[2] == "Up to date as far as is known"


def test_where_nothing_is_missing_the_page_says_that(world: World):
    shown = whole(world).shown()
    assert "Nothing is known to be missing or old." in words(part(shown, "missing"))
    assert standing(shown) == ["Not locked", "Every entry has a factor", "Up to date"]


def test_entries_without_a_factor_and_measured_ones_are_counted_by_type(world: World):
    world.emit("u", "hotel", 5, entries=9, unmatched=2, overridden=1).emit("u", "waste", 5)
    shown = world.shown()
    missing = part(shown, "missing")
    assert "2 of 15 results without a factor" in words(missing)
    (table,) = missing.iter("tbody")
    assert [words(row) for row in table] == ["Hotel nights 9 2 1"]
    assert standing(shown)[1] == "2 results without a factor"


def test_measured_entries_alone_are_told_too(world: World):
    (table,) = part(whole(world).emit("u", "hotel", 5, overridden=1).shown(), "missing").iter("tbody")
    assert [words(row) for row in table] == ["Hotel nights 2 0 1"]


def test_types_that_are_not_up_to_date_are_named_with_the_reason_also_without_results(world: World):
    world.old = {"plane": "its factors changed", "waste": "its first file came"}
    shown = world.shown()
    missing = words(part(shown, "missing"))
    assert "Flights : its factors changed" in missing
    assert "Waste : its first file came" in missing
    summaries = [words(s) for s in part(shown, "methods").iter("summary")]
    assert summaries == ["Flights not up to date 3.000 t CO₂e", "Waste not up to date 0 t CO₂e"]
    assert standing(shown)[2] == "2 types not up to date"


def test_a_locked_year_says_by_whom_when_and_why(world: World):
    world.lock = Lock("published in the annual report", "a.keller", MOMENT)
    shown = world.shown()
    said = "Locked by a.keller on 2 March 2026, 14:05 UTC : published in the annual report."
    assert said in words(part(shown, "missing"))
    assert standing(shown)[0] == "Locked"


def test_a_year_that_is_not_locked_may_still_change(world: World):
    assert "Not locked. The figures of 2025 may still change." in words(part(world.shown(), "missing"))


def test_a_past_state_says_of_when_it_is_and_claims_nothing_of_today(world: World):
    data = replace(world.data(), as_of=MOMENT.replace(year=2025))
    shown = fromstring(page(world.report(), data))
    assert standing(shown) == ["As it was on 2 March 2025, 14:05 UTC", "Every entry has a factor"]
    assert "As it was on 2 March 2025, 14:05 UTC . What came later" in words(part(shown, "missing"))
    assert "ocked" not in words(part(shown, "missing"))


def test_notes_of_the_report_are_all_there(world: World):
    world.notes = ("old in this report: plane", "units 2025 is not up to date: a new file")
    assert [words(li) for li in part(world.shown(), "missing").findall("details/ul/li")] == list(world.notes)


def test_figures_by_type_of_another_state_than_the_total_are_not_hidden(world: World):
    report, data = world.report(), world.emit("u", "hotel", 10**9).data()
    assert "Figures by type sum up to 4.000 t CO₂e" in words(part(fromstring(page(report, data)), "missing"))
    assert "Figures by type" not in words(part(world.shown(), "missing"))


def test_versions_tell_the_state_and_may_be_none(world: World):
    calculation = part(world.shown(), "calculation")
    assert "units 2025 91ab20c4e7710f3d" in words(calculation)
    bare = fromstring(page(world.report(), replace(world.data(), versions={})))
    assert not list(part(bare, "calculation").iter("table"))


def test_a_type_that_the_catalogue_lost_is_shown_by_its_name_and_not_left_out(world: World):
    """A year that was published with it and locked still has its page."""
    world.factors = [{"data_entry_type": "rocket", "source": "NASA", "factors": 1, "stale": 0, "mg": 0}]
    world.files = [
        {"kind": "data", "data_entry_type": "rocket", "file": "r.csv", "by": "eve", "at": MOMENT}
        | {"rows": 1, "taken": 1}
    ]
    names = ("data_entry_type", "emission_type", "classification", "entries", "kinds")
    world.unmatched = [dict(zip(names, ("rocket", "boost", "{}", 1, 1), strict=True))]
    world.emit("u", "hotel", 1, unmatched=1)
    said = words(world.shown())
    assert said.count("rocket") == 3
    results = [*world._results(), dict(zip(RESULT, ("rocket", "boost", 5, 1, 0, 0), strict=True))]
    assert page_data(CATALOGUE, institution="U", moment=MOMENT, results=results).methods


def test_the_words_that_lack_a_factor_are_told(world: World):
    world.emit("u", "hotel", 0, entries=9, unmatched=9)
    names = ("data_entry_type", "emission_type", "classification", "entries", "kinds")
    rows = [
        ("plane", "flight_co2", '{"cabin":"=first","haul":"long"}', 7, 31),
        ("hotel", "hotel", "{}", 2, 31),
    ]
    world.unmatched = [dict(zip(names, row, strict=True)) for row in rows]
    said = words(part(world.shown(), "missing"))
    assert "What no factor fits, the 2 most frequent of 31" in said
    assert "Flights flight co2 cabin =first, haul long 7" in said
    assert "any of it 2" in said


def test_units_that_no_file_names_are_told_with_their_mass(world: World):
    world.emit("forgotten", "road", 3 * 10**9).add("no entries")
    said = words(part(world.shown(), "missing"))
    assert "1 unit with entries and in no file of units: 3.000 t CO₂e that are in the whole" in said
    assert "Outside the tree" not in words(part(World().add("u").emit("u", "road", 1).shown(), "missing"))
