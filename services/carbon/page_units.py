"""The tree of units: each opens on those below it, its own tonnes and those of all below beside its name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from services.carbon.page_figures import Figures, UnitLine
from services.carbon.page_markup import Html, joined, tag
from services.carbon.page_numbers import CO2E, grouped
from services.carbon.page_sections import section


def units(figures: Figures) -> Html:
    if not figures.units:
        return section("units", "By unit", tag("p", "No units are known of this year."))
    head = tag(
        "div",
        tag("span", "Unit"),
        tag("span", "Own, t", class_="n"),
        tag("span", "With units below, t", class_="n"),
        class_="row head",
        aria_hidden="true",
    )
    return section(
        "units",
        "By unit",
        tag(
            "p",
            f"Tonnes of {CO2E}: a unit’s own, and with all units below it. ",
            tag("span", "Open a unit to see those below.", class_="screen"),
            class_="aside",
        ),
        tag("div", head, joined(_tree(figures)), class_="tree"),
    )


def _tree(figures: Figures) -> Iterator[Html]:
    """Written line by line: a tree of any depth, without a call per level."""
    yield Html("<ul>")
    end = UnitLine("", "", 0, 0, 0, 0, empty=True, leaf=True)
    for line, after in pairwise((*figures.units, end)):
        row = _row(line, figures)
        if line.leaf:
            closing = "</li>" + "</ul></details></li>" * (line.depth - after.depth)
            yield Html(f"<li>{tag('div', row, class_='row')}{closing}")
        else:
            opened = ' open=""' if line.depth == 0 else ""
            yield Html(f"<li><details{opened}>{tag('summary', row, class_='row')}<ul>")
    yield Html("</ul>")


def _row(line: UnitLine, figures: Figures) -> Html:
    notes = []
    if line.name != line.unit_id:
        notes.append(tag("small", tag("bdi", line.unit_id)))
    if line.empty:
        notes.append(tag("small", "no entries"))
    elif line.unmatched:
        notes.append(tag("small", f"{grouped(line.unmatched)} without factor"))
    states = (
        tag("span", tag("bdi", line.name), *(joined([" ", note]) for note in notes), class_="u"),
        _number("own", line.own_mg, figures),
        _number("with below", line.total_mg, figures),
    )
    return Html(" ".join(states))


def _number(label: str, mg: int, figures: Figures) -> Html:
    return tag("span", tag("i", f"{label} "), figures.tonnes.exact(mg), " t", class_="n")
