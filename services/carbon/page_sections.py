"""The sections of the page up to the units: head, what must be known at once, totals, their parts, years."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from services.carbon.page_charts import legend, module_bars, swatch, total_bar, year_columns
from services.carbon.page_data import Kind, PageData
from services.carbon.page_figures import SCOPES, Figures, Line
from services.carbon.page_markup import Head, Html, joined, table, tag, text
from services.carbon.page_numbers import CO2E, NONE, T_CO2E, change, counted, grouped, share

_SCOPE_MEANS = {
    1: "direct: burnt, leaked or released by the institution itself",
    2: "purchased electricity, heat and cold",
    3: "all else that its activities cause elsewhere",
}
_SCOPE_HEADS = tuple(Head(f"Scope\N{NO-BREAK SPACE}{scope}, {T_CO2E}") for scope in SCOPES)


def section(name: str, title: str, *content: object) -> Html:
    """A part of the page that the contents point to."""
    heading = tag("h2", title, id=f"{name}-heading")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-heading")


def moment(at: datetime) -> Html:
    return tag("time", f"{at.day} {at:%B %Y, %H:%M %Z}", datetime=at.isoformat(timespec="seconds"))


def head(figures: Figures, data: PageData) -> Html:
    of = [tag("p", figures.unit, " with all units below it", class_="of")] if figures.unit else []
    return tag(
        "header",
        tag("p", tag("bdi", data.institution), class_="eyebrow"),
        tag("h1", f"Carbon report {figures.year}"),
        *of,
        tag(
            "p", f"Greenhouse gas emissions in tonnes of {CO2E}. Made on ", moment(data.moment), class_="made"
        ),
        tag(
            "ul",
            *(tag("li", word) for word in _standing(figures, data)),
            class_="standing",
            aria_label="State",
        ),
    )


def _standing(figures: Figures, data: PageData) -> list[Html]:
    unmatched = figures.total.unmatched
    whole = f"{counted(unmatched, 'result')} without a factor" if unmatched else "Every entry has a factor"
    if data.as_of is not None:
        return [joined(["As it was on ", moment(data.as_of)]), text(whole)]
    return [text("Locked" if data.lock else "Not locked"), text(whole), text(data.standing.headline)]


def overview(figures: Figures) -> Html:
    line, tonnes = figures.total, figures.tonnes
    number = tag(
        "p", tag("span", tonnes.exact(line.mg), class_="figure"), " ", tag("span", T_CO2E, class_="unit")
    )
    scopes = (
        tag(
            "div",
            tag("dt", swatch(scope), f" Scope {scope}"),
            tag(
                "dd",
                tag("b", tonnes.exact(mg), f" {T_CO2E}"),
                tag("span", share(mg, line.mg), class_="share"),
            ),
            tag("dd", _SCOPE_MEANS[scope], class_="means"),
        )
        for scope, mg in zip(SCOPES, line.by_scope, strict=True)
    )
    return section(
        "total",
        "Total",
        tag("div", number, tag("p", _summary(figures), class_="summary"), class_="total"),
        tag("div", total_bar(figures), tag("dl", *scopes), class_="scopes"),
    )


def _summary(figures: Figures) -> str:
    if figures.total.empty:
        return "No emissions are known."
    filled = sum(not module.empty for module in figures.modules)
    of = f"From {counted(figures.results, 'result')} in {filled} of {counted(len(figures.modules), 'module')}"
    before = (
        figures.years[-2] if len(figures.years) > 1 and figures.years[-1].title == str(figures.year) else None
    )
    if before is None or before.empty or before.old or before.mg == 0:
        return f"{of}."
    return f"{of}. Against {before.title}: {change(figures.total.mg, before.mg)}."


def modules(figures: Figures) -> Html:
    heads = (
        Head("Module", number=False),
        *_SCOPE_HEADS,
        Head(f"Total, {T_CO2E}"),
        Head("Share"),
        Head("Without factor"),
    )
    rows = [_module_row(line, figures) for line in figures.modules]
    return section(
        "modules",
        "By module",
        tag("figure", legend(), module_bars(figures)),
        table(
            f"Emissions of {figures.year} by module and scope",
            heads,
            rows,
            _module_row(figures.total, figures),
        ),
    )


def _module_row(line: Line, figures: Figures) -> list[object]:
    if line.empty:
        return [joined([line.title, " ", tag("small", "no entries")]), *[NONE] * 6]
    return [
        line.title,
        *(figures.tonnes.exact(mg) for mg in (*line.by_scope, line.mg)),
        share(line.mg, figures.total.mg),
        grouped(line.unmatched),
    ]


def categories(figures: Figures, data: PageData) -> Html:
    """As the GHG Protocol divides the scopes."""
    sums: dict[tuple[int, str], list[Kind]] = defaultdict(list)
    for kind in (kind for method in data.methods for kind in method.kinds):
        sums[kind.scope, kind.category].append(kind)
    if not sums:
        return Html()
    rows = [
        _category_row(f"Scope {scope}, {name}", kinds, figures)
        for (scope, name), kinds in sorted(sums.items(), key=_numbered)
    ]
    told = sum(kind.mg for kinds in sums.values() for kind in kinds)
    if rest := figures.total.mg - told:
        mass = figures.tonnes.exact(rest)
        rows.append(["Of types that are no longer counted", mass, share(rest, figures.total.mg), NONE])
    heads = (
        Head("Category", number=False),
        Head(f"Total, {T_CO2E}"),
        Head("Share"),
        Head("Without factor"),
    )
    total = figures.total
    all_of_it = ["All", figures.tonnes.exact(total.mg), share(total.mg, total.mg), grouped(total.unmatched)]
    return section(
        "categories",
        "By category",
        table(f"Emissions of {figures.year} by category of the GHG Protocol", heads, rows, all_of_it),
    )


def _numbered(item: tuple[tuple[int, str], object]) -> tuple[int, int, str]:
    """Those of scope 3 have numbers, from 1 to 15."""
    scope, name = item[0]
    number = name.split()[0]
    return scope, int(number) if number.isdigit() else 0, name


def _category_row(title: str, kinds: Sequence[Kind], figures: Figures) -> list[object]:
    mg = sum(kind.mg for kind in kinds)
    unmatched = sum(kind.unmatched for kind in kinds)
    return [title, figures.tonnes.exact(mg), share(mg, figures.total.mg), grouped(unmatched)]


def years(figures: Figures) -> Html:
    """Nothing, where there is one year only."""
    if len(figures.years) < 2:
        return Html()
    heads = (
        Head("Year", number=False),
        *_SCOPE_HEADS,
        Head(f"Total, {T_CO2E}"),
        Head("Against the year before"),
        Head("Without factor"),
    )
    before = [None, *(old for old, _ in pairwise(figures.years))]
    rows = [_year_row(line, old, figures) for old, line in zip(before, figures.years, strict=True)]
    first, last = figures.years[0].title, figures.years[-1].title
    return section(
        "years",
        "Over the years",
        tag("figure", legend(), year_columns(figures)),
        table(f"Emissions {first} to {last} by scope", heads, rows),
        tag(
            "p", "Each year as its own report says, with the units and factors of that year.", class_="aside"
        ),
    )


def _year_row(line: Line, before: Line | None, figures: Figures) -> list[object]:
    if line.empty:
        return [joined([line.title, " ", tag("small", "no report")]), *[NONE] * 6]
    return [
        joined([line.title, " ", tag("small", "not up to date")]) if line.old else line.title,
        *(figures.tonnes.exact(mg) for mg in (*line.by_scope, line.mg)),
        NONE if before is None or before.empty or before.old or line.old else change(line.mg, before.mg),
        grouped(line.unmatched),
    ]
