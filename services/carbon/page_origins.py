"""The sections that let a reader trust the numbers: what is missing or old, methods, sources, calculation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from services.carbon.page_data import Brought, Method, PageData, spoken
from services.carbon.page_figures import Figures
from services.carbon.page_markup import Head, Html, joined, table, tag
from services.carbon.page_numbers import T_CO2E, counted, grouped
from services.carbon.page_sections import moment, section
from services.carbon.report import Report


def missing(report: Report, figures: Figures, data: PageData) -> Html:
    found = list(_known_gaps(figures, data))
    nothing = tag("p", "Nothing is known to be missing or old.") if not found else ""
    notes = (
        tag(
            "details",
            tag("summary", "Notes of the system"),
            tag("ul", *(tag("li", spoken(note)) for note in report.notes)),
        )
        if report.notes
        else ""
    )
    return section(
        "missing", "What is missing or old", tag("p", _lock(figures, data)), nothing, *found, notes
    )


def _lock(figures: Figures, data: PageData) -> Html:
    if data.as_of is not None:
        return joined([tag("b", "As it was on ", moment(data.as_of)), ". What came later is not in it."])
    if data.lock is None:
        return joined([tag("b", "Not locked."), f" The figures of {figures.year} may still change."])
    lock = data.lock
    return joined(
        [
            tag("b", "Locked"),
            f" by {lock.by} on ",
            moment(lock.at),
            f": {lock.reason}. Nothing changes the figures of {figures.year} unless it is unlocked.",
        ]
    )


def _known_gaps(figures: Figures, data: PageData) -> Iterator[Html]:
    yield from _not_up_to_date(data)
    yield from _left_out(data)
    yield from _unanswered(data)
    if figures.total.unmatched or any(kind.overridden for method in data.methods for kind in method.kinds):
        yield tag("h3", "Without a factor, or measured")
        yield _unmatched(figures, data)
    if empty := [line.title for line in figures.modules if line.empty]:
        yield tag("h3", "Modules without entries")
        yield tag(
            "p", f"{', '.join(empty)}: nothing was entered, which need not mean that there was nothing."
        )
    if outside := [unit for unit in figures.units if unit.outside and not unit.empty]:
        yield tag("h3", "Outside the tree of units")
        mass = figures.tonnes.said(sum(unit.own_mg for unit in outside))
        yield tag(
            "p",
            f"{counted(len(outside), 'unit')} with entries and in no file of units: {mass} that are in the"
            " whole, and in no unit above them. Among the units they stand by themselves.",
        )
    if unequal := _unequal(figures, data):
        yield unequal


def _not_up_to_date(data: PageData) -> Iterator[Html]:
    standing = data.standing
    if standing.altered:
        yield tag("h3", "Not what was calculated")
        yield tag("p", f"These figures were changed by something else: {spoken(standing.altered)}.")
    if standing.unsteady:
        yield tag("p", "These figures changed while they were read, and may not belong together.")
    items = [tag("li", tag("b", method.title), f": {method.old}") for method in data.methods if method.old]
    items += [tag("li", tag("b", spoken(line.subject)), f": {spoken(line.why)}") for line in standing.others]
    if items:
        yield tag("h3", "Not up to date")
        yield tag("p", "Something newer has come, or was lost, that these figures do not have in them.")
        yield tag("ul", *items)


def _left_out(data: PageData) -> Iterator[Html]:
    if data.standing.left_out:
        titles = {method.name: method.title for method in data.methods}
        yield tag("h3", "Left out")
        yield tag("p", "What was wrong of it was left out, and is missing in every sum.")
        yield tag(
            "ul",
            *(
                tag("li", tag("b", titles.get(one.of, one.of)), f": {spoken(one.what)}")
                for one in data.standing.left_out
            ),
        )


def _unanswered(data: PageData) -> Iterator[Html]:
    if said := data.standing.unanswered:
        yield tag("h3", "Applications that do not answer")
        yield tag("p", "What changed there since is not known, and may be missing.")
        yield tag("ul", *(tag("li", spoken(one)) for one in said))


def _unmatched(figures: Figures, data: PageData) -> Html:
    said = tag(
        "p",
        f"{grouped(figures.total.unmatched)} of {counted(figures.results, 'result')} without a factor:"
        " missing in every sum. A mass that was measured takes the place of a calculation.",
    )
    rows = [
        [
            joined([method.title, " ", tag("small", _words(kind.name))])
            if len(method.kinds) > 1
            else method.title,
            grouped(kind.entries),
            grouped(kind.unmatched),
            grouped(kind.overridden),
        ]
        for method in data.methods
        for kind in method.kinds
        if kind.unmatched or kind.overridden
    ]
    heads = (Head("Data entry type", number=False), Head("Entries"), Head("Without factor"), Head("Measured"))
    counts = table("Entries without a factor, and measured ones", heads, rows) if rows else ""
    return joined([said, counts, _words_without_factor(data)])


def _words_without_factor(data: PageData) -> Html | str:
    """What a person has to add factors for."""
    if not data.unmatched:
        return ""
    heads = (Head("Data entry type", number=False), Head("No factor for", number=False), Head("Entries"))
    rows = [
        [
            joined([one.title, " ", tag("small", _words(one.kind))]) if one.kind else one.title,
            tag("bdi", one.words) if one.words else tag("small", "any of it"),
            grouped(one.entries),
        ]
        for one in data.unmatched
    ]
    shown = len(rows)
    most = (
        f", the {shown} most frequent of {grouped(data.unmatched_kinds)}"
        if data.unmatched_kinds > shown
        else ""
    )
    return table(f"What no factor fits{most}", heads, rows)


def _unequal(figures: Figures, data: PageData) -> Html | None:
    """The sums by type are another table's: if they differ, one of the two is about to follow."""
    by_type = sum(method.mg for method in data.methods)
    if not data.methods or by_type == figures.total.mg:
        return None
    said = figures.tonnes.said(by_type)
    return tag(
        "p",
        tag("b", "Figures by type"),
        f" sum up to {said}, not to the total: one of them is about to follow.",
    )


def methods(figures: Figures, data: PageData) -> Html:
    by_module: dict[str, list[Method]] = defaultdict(list)
    for method in data.methods:
        by_module[method.module].append(method)
    parts = [
        joined([tag("h3", module.title), *(_method(method, figures) for method in by_module[module.name])])
        for module in data.modules
        if module.name in by_module
    ]
    return section("methods", "Methods", *(parts or [tag("p", "No type has results.")]))


def _method(method: Method, figures: Figures) -> Html:
    old = tag("small", " not up to date") if method.old else ""
    records = (
        *(tag("dt", "What is counted"), tag("dd", _prose(method.description))),
        *(tag("dt", "Formula"), tag("dd", tag("code", method.formula))),
        *(tag("dt", "Method"), tag("dd", _prose(method.method))),
    )
    heads = (
        Head("Kind of emissions", number=False),
        Head("Scope"),
        Head("Category", number=False),
        Head("Entries"),
        Head(T_CO2E),
    )
    rows = [
        [
            _words(kind.name),
            kind.scope,
            kind.category,
            grouped(kind.entries),
            figures.tonnes.exact(kind.mg),
        ]
        for kind in method.kinds
    ]
    return tag(
        "details",
        tag(
            "summary",
            tag("span", method.title, old),
            tag("span", figures.tonnes.said(method.mg), class_="n"),
        ),
        tag("dl", *records),
        table(f"Results of {method.title}", heads, rows) if rows else "",
        class_="method",
    )


def sources(figures: Figures, data: PageData) -> Html:
    heads = (
        Head("Data entry type", number=False),
        Head("Source", number=False),
        Head("Factors used"),
        Head("Not in the latest file"),
        Head(T_CO2E),
    )
    rows = [
        [
            source.title,
            tag("bdi", source.source) if source.source else tag("small", "no source given"),
            grouped(source.factors),
            grouped(source.stale),
            figures.tonnes.exact(source.mg),
        ]
        for source in data.sources
    ]
    if not rows:
        return section("sources", "Sources of the factors", tag("p", "No factors were used."))
    return section(
        "sources",
        "Sources of the factors",
        table("Sources of the factors used, with what was calculated by them", heads, rows),
    )


def calculation(figures: Figures, data: PageData) -> Html:
    rows = [[name, tag("code", version)] for name, version in data.versions.items()]
    heads = (Head("What", number=False), Head("Version", number=False))
    return section(
        "calculation",
        "How it was calculated",
        tag("ol", *(tag("li", step) for step in _steps(figures))),
        _files(data),
        table("State that the figures come from", heads, rows) if rows else "",
    )


def _files(data: PageData) -> Html | str:
    """Who brought what, and when."""
    heads = (
        Head("What", number=False),
        Head("File", number=False),
        Head("Rows"),
        Head("Uploaded by", number=False),
        Head("On", number=False),
    )
    rows = [
        [one.what, tag("bdi", one.file), _rows_of(one), tag("bdi", one.by), moment(one.at)]
        for one in data.files
    ]
    return table("Files that the figures come from", heads, rows) if rows else ""


def _rows_of(file: Brought) -> str:
    taken = grouped(file.taken)
    return taken if file.taken == file.rows else f"{taken} of {grouped(file.rows)}"


def _steps(figures: Figures) -> Iterator[str]:
    yield (
        "Each entry’s quantity is multiplied by the factor that its own words choose. The result is rounded"
        " once, to a whole milligram."
    )
    yield (
        "All sums are sums of whole milligrams: exact, and the same in every order and every run."
        f" The total is {grouped(figures.total.mg)} mg."
    )
    yield (
        f"Shown are tonnes (1 t = {grouped(10**9)} mg), each figure rounded by itself to"
        f" {counted(figures.tonnes.decimals, 'decimal')}. The last digit of a sum"
        " may therefore differ from the sum of the figures shown."
    )
    yield f"A unit’s total is its own mass and that of all units below it, in the tree of {figures.year}."
    yield "An entry without a factor has no mass: it is listed as missing, and not counted as zero."
    yield "Every calculated result names the factor it was calculated with, and which of the factor’s values."


def _prose(words: str) -> Html:
    """With what stands between backticks as code."""
    return joined(tag("code", part) if n % 2 else part for n, part in enumerate(words.split("`")))


def _words(name: str) -> str:
    return name.replace("_", " ")
