"""The numbers of a report's page add up, and every unit, type and year stands where it belongs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.carbon.report_view import Unit, view_of
from tests.unit.domain.carbon.report_world import CATALOGUE, World, university

TONNE = 10**9


@pytest.fixture
def world() -> World:
    return World().add("u").emit("u", "flight_non_co2", 2 * TONNE).emit("u", "flight_co2", TONNE, entries=4)


def test_view__of_a_large_report__modules_scopes_categories_and_types_add_up_to_its_total():
    world = university(60)
    view, total = world.view(), world.report().total_mg
    assert view.total.mg == total == sum(row["mg_co2e"] for row in world.sums)
    assert sum(line.mg for line in view.modules) == total
    assert tuple(map(sum, zip(*(line.by_scope for line in view.modules), strict=True))) == view.total.by_scope
    assert (
        sum(method.mg for method in view.methods) == sum(category.mg for category in view.categories) == total
    )
    assert sum(line.unmatched for line in view.modules) == view.total.unmatched
    assert [line.mg for line in view.modules] == sorted((line.mg for line in view.modules), reverse=True)


def test_view__of_one_unit__has_the_units_below_it_and_their_total():
    world = World().add("all").add("faculty", "all", "Faculty").add("chair", "faculty").add("other", "all")
    world.emit("all", "road", 1).emit("faculty", "road", 20).emit("chair", "waste", 300).emit(
        "other", "road", 4000
    )
    view = world.view("faculty")
    assert (view.unit, view.total.mg) == ("Faculty", 320)
    assert [unit.unit_id for unit in view.units] == ["faculty", "chair"]


def test_years__with_a_gap__keep_its_place_and_compare_neighbours_only():
    world = World(before={2022: (0, TONNE, 0), 2023: (0, 2 * TONNE, 0), 2025: (9, 9, 9)})
    view = world.add("u").emit("u", "electricity", TONNE).view()
    assert [(line.title, line.mg, line.empty, line.before_mg) for line in view.years] == [
        ("2022", TONNE, False, None),
        ("2023", 2 * TONNE, False, TONNE),
        ("2024", 0, True, 2 * TONNE),
        ("2025", TONNE, False, None),
    ]


def test_years__that_are_outdated__are_compared_with_nothing():
    world = World(before={2023: (0, 2 * TONNE, 0), 2024: (0, TONNE, 0)}, outdated_years=(2024,))
    years = world.add("u").emit("u", "electricity", TONNE).view().years
    assert [(line.outdated, line.before_mg) for line in years] == [(False, None), (True, None), (False, None)]


def test_categories__of_a_type_that_the_catalogue_lost__are_one_rest():
    world = World().add("u").emit("u", "electricity", TONNE).emit("u", "train", 3 * TONNE)
    known = [row for row in world.rows().results if row["data_entry_type"] != "train"]
    view = view_of(CATALOGUE, world.report(), replace(world.rows(), results=known), world.context())
    assert [(one.title, one.mg, one.unmatched) for one in view.categories] == [
        ("Scope 2, purchased electricity", TONNE, 0),
        ("Of types that are no longer counted", 3 * TONNE, None),
    ]


def test_methods__of_outdated_types__are_there_without_results_too(world: World):
    world.old = {"plane": "its factors changed", "waste": "its first file came"}
    assert [(m.type.name, m.outdated, m.mg) for m in world.view().methods] == [
        ("plane", "its factors changed", 3 * TONNE),
        ("waste", "its first file came", 0),
    ]


def test_incomplete__has_entries_without_a_factor_and_measured_ones(world: World):
    world.emit("u", "hotel", 5, entries=9, unmatched=2, overridden=1).emit("u", "waste", 5, overridden=1)
    counts = [(m.type.name, e.entries, e.unmatched, e.overridden) for m, e in world.view().incomplete]
    assert counts == [("hotel", 9, 2, 1), ("waste", 1, 0, 1)]


@pytest.mark.parametrize(("tonnes", "decimals"), [(0, 3), (9, 3), (10, 2), (999, 2), (-1_000, 1)])
def test_decimals__leave_four_digits_of_the_total(tonnes: int, decimals: int):
    assert World().add("u").emit("u", "road", tonnes * TONNE).view().decimals == decimals


def names(units: tuple[Unit, ...]) -> list[str]:
    return [unit.name for unit in units]


def test_units__of_a_large_tree__have_totals_of_their_own_and_those_below():
    view = university(120).view()
    assert view.units[0].total_mg == view.total.mg == sum(unit.own_mg for unit in view.units)
    for n, unit in enumerate(view.units):
        below = [one for one in view.units[n + 1 :] if one.depth == unit.depth + 1]
        inside = next(
            (k for k, one in enumerate(view.units[n + 1 :]) if one.depth <= unit.depth), len(view.units)
        )
        children = [one for one in view.units[n + 1 : n + 1 + inside] if one in below]
        assert unit.own_mg + sum(child.total_mg for child in children) == unit.total_mg
        assert unit.leaf == (not children)


def test_units__that_no_file_names__stand_at_the_top_by_their_id():
    units = World().add("known").emit("ghost", "road", 9).view().units
    assert [(unit.name, unit.outside, unit.depth) for unit in units] == [
        ("ghost", True, 0),
        ("known", False, 0),
    ]


@pytest.mark.parametrize(("unit", "shown"), [(None, ["a", "b", "c", "top"]), ("b", ["a", "b", "c"])])
def test_units__in_a_circle__are_shown_once(unit: str | None, shown: list[str]):
    world = World().add("top").add("a", "c").add("b", "a").add("c", "b").emit("c", "road", 9)
    assert sorted(names(world.view(unit).units)) == shown
    assert names(World().add("a", "a").emit("a", "road", 1).view().units) == ["a"]
