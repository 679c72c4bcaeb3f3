"""The tree of units: every unit once, in its place, whatever the tree is like."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import pytest

from tests.unit.carbon.page_world import World, masses, part, university, words


def rows(section: Element) -> list[Element]:
    return [e for e in section.iter() if e.get("class") == "row"]


def names(section: Element) -> list[str]:
    return [next(row.iter("bdi")).text or "" for row in rows(section)]


def depth(element: Element) -> int:
    below = [depth(child) for child in element]
    return max(below, default=0) + (element.tag == "details")


def check_sums(item: Element) -> int:
    """Own and the totals of those below are the total, at every unit; returns the total."""
    row = next(e for e in item.iter() if e.get("class") == "row")
    own, total = masses(row)
    below = item.findall("details/ul/li")
    assert own + sum(map(check_sums, below)) == total
    return total


def test_every_total_is_the_units_own_and_those_of_the_units_below():
    world = university(120)
    (top,) = part(world.shown(), "units").findall("div/ul/li")
    assert check_sums(top) == world.report().total_mg


def test_six_levels_are_six_levels():
    world = World().add("1")
    for level in range(2, 7):
        world.add(str(level), str(level - 1))
    units = part(world.emit("6", "road", 7).shown(), "units")
    assert names(units) == list("123456")
    assert depth(units) == 5
    assert [masses(row) for row in rows(units)] == [[0, 7]] * 5 + [[7, 7]]


def test_only_the_top_is_open():
    units = part(university(50).shown(), "units")
    (top,) = units.findall("div/ul/li/details")
    assert [d for d in units.iter("details") if d.get("open") is not None] == [top]


def test_three_hundred_units_of_three_years_are_all_there_and_small():
    world = university(300)
    html = world.page()
    assert len(html.encode()) < 300_000
    identities = [b.text for row in rows(part(world.shown(), "units")) for b in list(row.iter("bdi"))[1:]]
    assert sorted(identities) == sorted(world.units)


def test_the_heaviest_stand_first_and_equals_by_name():
    world = World().add("top").add("a", "top", "Zoology").add("b", "top", "Arts").add("c", "top", "Physics")
    assert names(part(world.emit("c", "road", 5).shown(), "units")) == ["top", "Physics", "Arts", "Zoology"]


def test_a_long_name_is_kept_whole():
    name = "Institute " * 30 + "x" * 500
    units = part(World().add("u", None, name).emit("u", "road", 1).shown(), "units")
    assert name in words(units)


def test_a_unit_without_entries_says_so_and_one_without_factors_too():
    world = World().add("empty").add("zero").add("poor")
    world.emit("zero", "road", 0).emit("poor", "road", 1, entries=3, unmatched=2)
    said = {words(row).split()[0]: words(row) for row in rows(part(world.shown(), "units"))}
    assert said == {
        "poor": "poor 2 without factor own < 0.001 t with below < 0.001 t",
        "empty": "empty no entries own 0 t with below 0 t",
        "zero": "zero own 0 t with below 0 t",
    }


def test_a_unit_with_emissions_that_no_tree_knows_is_listed_by_its_id():
    units = part(World().add("known").emit("ghost", "road", 9).shown(), "units")
    assert names(units) == ["ghost", "known"]


def test_a_unit_whose_parent_is_unknown_stands_at_the_top():
    units = part(World().add("a", "nowhere").add("b", "a").shown(), "units")
    assert [words(li)[0] for li in units.findall("div/ul/li")] == ["a"]
    assert names(units) == ["a", "b"]


@pytest.mark.parametrize("unit", [None, "b"])
def test_a_circle_made_by_hand_ends(unit: str | None):
    world = World().add("top").add("a", "c").add("b", "a").add("c", "b").emit("c", "road", 9)
    found = names(part(world.shown(unit), "units"))
    assert sorted(found) == (["a", "b", "c", "top"] if unit is None else ["a", "b", "c"])


def test_a_unit_that_is_its_own_parent_is_shown_once():
    assert names(part(World().add("a", "a").emit("a", "road", 1).shown(), "units")) == ["a"]


def test_a_chain_of_any_length_is_no_trouble():
    world = World().add("0")
    for n in range(1, 1_500):
        world.add(str(n), str(n - 1))
    html = world.page()
    assert html.count("<details open") == 1
    assert html.count("<details") == html.count("</details>") == 1_499
