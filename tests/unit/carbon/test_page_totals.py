"""What the page shows adds up, in whole milligrams, and says so honestly where it rounds or knows nothing."""

from __future__ import annotations

from decimal import Decimal
from xml.etree.ElementTree import Element

import pytest

from services.carbon.page_numbers import Tonnes, change, counted, grouped, share
from tests.unit.carbon.page_world import World, masses, part, university, words

TONNE = 10**9
THIN = "\N{NARROW NO-BREAK SPACE}"


def lines(section: Element) -> dict[str, list[str]]:
    """The first table's cells by the name of the row."""
    table = next(section.iter("table"))
    rows = [[words(state) for state in row] for row in table.iter("tr")]
    return {row[0]: row[1:] for row in rows}


def test_the_module_table_adds_up_both_ways_to_the_report():
    world = university(60)
    table = next(part(world.shown(), "modules").iter("table"))
    rows = [masses(row) for row in table.iter("tr") if masses(row)]
    *modules, total = rows
    assert all(sum(row[:3]) == row[3] for row in rows)
    assert [sum(column) for column in zip(*modules, strict=True)] == total
    assert total[3] == world.report().total_mg == sum(row["mg_co2e"] for row in world.sums)


def test_total_scopes_methods_and_calculation_tell_the_same_total():
    world = university(60)
    shown, total = world.shown(), world.report().total_mg
    first, *scopes = masses(part(shown, "total"))
    assert first == sum(scopes) == total
    assert sum(masses(part(shown, "methods"))) == total
    assert f"The total is {grouped(total)} mg.".replace(THIN, " ") in words(part(shown, "calculation"))


def test_a_units_report_has_that_units_total():
    world = World().add("all").add("faculty", "all", "Faculty").add("chair", "faculty").add("other", "all")
    world.emit("all", "road", 1).emit("faculty", "road", 20).emit("chair", "waste", 300).emit(
        "other", "road", 4000
    )
    shown = world.shown("faculty")
    assert masses(part(shown, "total"))[0] == 320
    assert "Faculty with all units below it" in words(next(shown.iter("header")))
    assert {b.text for b in part(shown, "units").iter("bdi")} == {"Faculty", "faculty", "chair"}


def test_a_module_without_entries_is_shown_as_such_and_one_of_zero_as_zero():
    shown = World().add("u").emit("u", "livestock", 0, entries=3).shown()
    rows = lines(part(shown, "modules"))
    assert rows["Processes"] == ["0", "0", "0", "0", "–", "0"]
    assert rows["Business travel no entries"] == ["–"] * 6
    missing = words(part(shown, "missing"))
    assert "Modules without entries Business travel, Commuting" in missing
    assert "Processes" not in missing


def test_a_total_of_zero_divides_by_nothing():
    world = World(before={2024: (0, 0, 0)}).add("u").emit("u", "livestock", 0)
    shown = world.shown()
    assert lines(part(shown, "modules"))["All"] == ["0", "0", "0", "0", "–", "0"]
    assert lines(part(shown, "years"))["2025"] == ["0", "0", "0", "0", "–", "0"]
    assert not [
        r for r in shown.iter("rect") if r.get("class", "").startswith("f") and r.find("title") is not None
    ]


def test_a_report_of_nothing_is_a_page_all_the_same():
    shown = World().shown()
    assert "No emissions are known." in words(part(shown, "total"))
    assert "No units are known of this year." in words(part(shown, "units"))
    assert "No type has results." in words(part(shown, "methods"))


def test_bars_are_as_long_as_their_masses():
    world = World().add("u").emit("u", "combustion", 3 * TONNE).emit("u", "electricity", TONNE)
    world.emit("u", "road", 2 * TONNE)
    bars = {
        title.text: rect.attrib
        for rect in part(world.shown(), "modules").iter("rect")
        if (title := rect.find("title")) is not None
    }
    by_name = {str(name).split(":")[0]: (bar["class"], bar["x"], bar["width"]) for name, bar in bars.items()}
    assert by_name == {
        "Buildings, scope 1": ("f1", "0.000%", "75.000%"),
        "Buildings, scope 2": ("f2", "75.000%", "25.000%"),
        "Business travel, scope 3": ("f3", "0.000%", "50.000%"),
    }


def test_years_are_compared_and_a_missing_one_keeps_its_place():
    world = World(before={2022: (0, TONNE, 0), 2023: (0, 2 * TONNE, 0), 2025: (9, 9, 9)})
    world.add("u").emit("u", "electricity", TONNE)
    rows = lines(part(world.shown(), "years"))
    assert list(rows)[1:] == ["2022", "2023", "2024 no report", "2025"]
    assert rows["2023"][4:] == [f"+100.0{THIN}%".replace(THIN, " "), "0"]
    assert rows["2024 no report"] == ["–"] * 6
    assert rows["2025"][3:5] == ["1.000", "–"]


def test_the_categories_of_the_protocol_add_up_to_the_report():
    world = university(60)
    table = next(part(world.shown(), "categories").iter("table"))
    *parts, total = [masses(row) for row in table.iter("tr") if masses(row)]
    assert [sum(column) for column in zip(*parts, strict=True)] == total
    names = list(lines(part(world.shown(), "categories")))[1:-1]
    assert names[:2] == ["Scope 1, fugitive emissions", "Scope 1, mobile combustion"]
    assert names[-2:] == ["Scope 3, 6 business travel", "Scope 3, 7 employee commuting"]


def test_what_a_type_brought_that_is_no_longer_counted_is_in_no_category_and_told():
    class Lost(World):
        def _results(self):
            return [row for row in super()._results() if row["data_entry_type"] != "train"]

    world = Lost().add("u").emit("u", "electricity", TONNE).emit("u", "train", 3 * TONNE)
    assert lines(part(world.shown(), "categories")) == {
        "Category": ["Total, t CO₂e", "Share", "Without factor"],
        "Scope 2, purchased electricity": ["1.000", "25.0 %", "0"],
        "Of types that are no longer counted": ["3.000", "75.0 %", "–"],
        "All": ["4.000", "100.0 %", "0"],
    }


def test_with_a_year_that_is_not_up_to_date_nothing_is_compared():
    world = World(before={2023: (0, 2 * TONNE, 0), 2024: (0, TONNE, 0)}, old_years=(2024,))
    shown = world.add("u").emit("u", "electricity", TONNE).shown()
    rows = lines(part(shown, "years"))
    assert list(rows)[1:] == ["2023", "2024 not up to date", "2025"]
    assert rows["2024 not up to date"][3:5] == ["1.000", "–"]
    assert rows["2025"][3:5] == ["1.000", "–"]
    assert "Against" not in words(part(shown, "total"))


def test_of_a_single_year_no_trend_is_shown():
    shown = World(before={2025: (1, 2, 3)}).add("u").emit("u", "road", TONNE).shown()
    assert "years" not in {s.get("id") for s in shown.iter("section")}
    assert "#years" not in {a.get("href") for a in shown.iter("a")}


def test_thirty_years_leave_room_for_their_labels():
    world = World(before=dict.fromkeys(range(1996, 2025), (TONNE, TONNE, 10**12)))
    world.add("u").emit("u", "road", TONNE)
    labels = [t.text for t in part(world.shown(), "years").iter("text")]
    assert labels[-2:] == ["1.000", "2025"]
    assert len(labels) <= 10


@pytest.mark.parametrize(
    ("mg", "total", "said"),
    [
        (0, 0, "0"),
        (1, 5, f"<{THIN}0.001"),
        (500_000, TONNE, "0.000"),
        (500_001, TONNE, "0.001"),
        (12_345 * TONNE + 50_000_000, 12_345 * TONNE, f"12{THIN}345.0"),
        (12_345 * TONNE + 50_000_001, 12_345 * TONNE, f"12{THIN}345.1"),
        (9_007_199_254_740_993, 9_007_199_254_740_993, f"9{THIN}007{THIN}199.3"),
        (-1_500 * TONNE, 10 * TONNE, f"−1{THIN}500.00"),
    ],
)
def test_tonnes_are_rounded_from_whole_milligrams(mg: int, total: int, said: str):
    assert Tonnes.of_total(total).plain(mg) == said


def test_small_numbers_are_said_in_words_that_fit():
    assert (counted(1, "type"), counted(2, "type")) == ("1 type", "2 types")
    assert counted(1_000, "entry", "entries") == f"1{THIN}000 entries"
    assert (share(1, 3), share(0, 0)) == (f"33.3{THIN}%", "–")
    assert (change(90, 100), change(100, 100), change(5, 0)) == (f"−10.0{THIN}%", f"0.0{THIN}%", "–")
    assert grouped(Decimal("-1234.5"), 1) == f"−1{THIN}234.5"
