"""Charts as SVG that fits every width: across in percent, down in pixels, so that letters never shrink.

Scopes differ by pattern besides colour. Every chart is told in words as well, and a table beside it has the
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.carbon.page_figures import SCOPES, Figures, Line
from services.carbon.page_markup import Html, joined, tag
from services.carbon.page_numbers import NONE, T_CO2E, Tonnes

_NARROW = 320
"""Pixels a chart has on a phone, which its words must fit."""
_LETTER = 8
"""Pixels of a letter of a wide font, on the average."""
_BAR, _BAR_STEP = 18, 54
_COLUMN_TOP, _COLUMN_HEIGHT = 26, 180
_COLUMN_WIDEST = 12.0


def patterns() -> Html:
    """What fills scope 2 and 3; every chart refers to it."""
    return tag(
        "svg",
        tag(
            "defs",
            _pattern(2, tag("rect", class_="mark", width=1.5, height=7), turned="rotate(45)"),
            _pattern(3, tag("circle", class_="mark", cx=3.5, cy=3.5, r=1.2), turned=None),
        ),
        class_="patterns",
        width=0,
        height=0,
        aria_hidden="true",
        focusable="false",
    )


def _pattern(scope: int, mark: Html, turned: str | None) -> Html:
    return tag(
        "pattern",
        tag("rect", class_=f"c{scope}", width=7, height=7),
        mark,
        id=f"scope{scope}",
        width=7,
        height=7,
        patternUnits="userSpaceOnUse",
        patternTransform=turned,
    )


def swatch(scope: int) -> Html:
    box = tag("rect", class_=f"f{scope}", width=14, height=14, rx=2)
    return tag("svg", box, class_="swatch", width=14, height=14, aria_hidden="true", focusable="false")


def legend() -> Html:
    items = (tag("li", swatch(scope), f" Scope {scope}") for scope in SCOPES)
    return tag("ul", *items, class_="legend", aria_label="Legend")


def total_bar(figures: Figures) -> Html:
    """All of the report as one bar, parted by scope."""
    line = figures.total
    return _chart(
        "total",
        "The total by scope",
        _words([line], figures.tonnes),
        24,
        joined(_stack(line, max(line.mg, 1), 0, 24, figures.tonnes)),
    )


def module_bars(figures: Figures) -> Html:
    """A bar for each module."""
    most = max((line.mg for line in figures.modules), default=0)
    bars = (_bar(line, most, n * _BAR_STEP, figures.tonnes) for n, line in enumerate(figures.modules))
    return _chart(
        "modules",
        f"Emissions of {figures.year} by module and scope, in {T_CO2E}",
        _words(figures.modules, figures.tonnes),
        len(figures.modules) * _BAR_STEP - 8,
        joined(bars),
    )


def _bar(line: Line, most: int, y: int, tonnes: Tonnes) -> Html:
    value = "no entries" if line.empty else tonnes.said(line.mg)
    room = int(_NARROW / _LETTER) - len(value) - 1
    name = line.title if len(line.title) <= room else f"{line.title[: room - 1]}…"
    return tag(
        "g",
        tag("text", name, x=0, y=y + 14, class_="name"),
        tag("text", value, x="100%", y=y + 14, class_="value end"),
        tag("rect", class_="track", x=0, y=y + 22, width="100%", height=_BAR),
        *(_stack(line, max(most, 1), y + 22, _BAR, tonnes)),
    )


def _stack(line: Line, most: int, y: int, height: int, tonnes: Tonnes) -> Iterator[Html]:
    """A bar's scopes side by side. A mass below nothing has no length; the table tells it."""
    x = 0.0
    for scope, mg in zip(SCOPES, line.by_scope, strict=True):
        if mg <= 0:
            continue
        width = 100 * mg / most
        told = tag("title", f"{line.title}, scope {scope}: {tonnes.said(mg)}")
        place = {"x": f"{x:.3f}%", "y": y, "width": f"{width:.3f}%", "height": height}
        yield tag("rect", told, class_=f"f{scope}", **place)
        x += width


def year_columns(figures: Figures) -> Html:
    """A column for each year."""
    lines, tonnes = figures.years, figures.tonnes
    most = max((line.mg for line in lines), default=0)
    band = 100 / len(lines)
    values = [NONE if line.empty else tonnes.plain(line.mg) for line in lines]
    every = -(-len(lines) * _LETTER * 5 // _NARROW)
    crowded = max(map(len, values)) * _LETTER > _NARROW / len(lines)
    columns = (
        _column(
            line,
            "" if crowded and n < len(lines) - 1 else values[n],
            line.title if (len(lines) - 1 - n) % every == 0 else "",
            (n * band, band),
            max(most, 1),
            tonnes,
        )
        for n, line in enumerate(lines)
    )
    bottom = _COLUMN_TOP + _COLUMN_HEIGHT
    axis = tag("line", class_="axis", x1=0, x2="100%", y1=bottom, y2=bottom)
    title = f"Emissions {lines[0].title} to {lines[-1].title} by scope, in {T_CO2E}"
    return _chart("years", title, _words(lines, tonnes), bottom + 26, joined([*columns, axis]))


def _column(
    line: Line, value: str, label: str, place: tuple[float, float], most: int, tonnes: Tonnes
) -> Html:
    start, band = place
    width = min(band * 0.6, _COLUMN_WIDEST)
    middle, bottom = start + band / 2, float(_COLUMN_TOP + _COLUMN_HEIGHT)
    parts: list[Html] = []
    for scope, mg in zip(SCOPES, line.by_scope, strict=True):
        if mg > 0:
            height = _COLUMN_HEIGHT * mg / most
            bottom -= height
            told = tag("title", f"{line.title}, scope {scope}: {tonnes.said(mg)}")
            x, y = f"{middle - width / 2:.3f}%", f"{bottom:.2f}"
            parts.append(
                tag("rect", told, class_=f"f{scope}", x=x, y=y, width=f"{width:.3f}%", height=f"{height:.2f}")
            )
    x = f"{middle:.3f}%"
    under = _COLUMN_TOP + _COLUMN_HEIGHT + 20
    return tag(
        "g",
        *parts,
        tag("text", value, x=x, y=f"{bottom - 8:.2f}", class_="value mid") if value else "",
        tag("text", label, x=x, y=under, class_="name mid") if label else "",
    )


def _words(lines: Sequence[Line], tonnes: Tonnes) -> str:
    return "; ".join(_told(line, tonnes) for line in lines)


def _told(line: Line, tonnes: Tonnes) -> str:
    if line.empty:
        return f"{line.title}: nothing is known"
    scopes = ", ".join(
        f"scope {scope} {tonnes.plain(mg)}" for scope, mg in zip(SCOPES, line.by_scope, strict=True)
    )
    return f"{line.title}: {tonnes.said(line.mg)} ({scopes})"


def _chart(name: str, title: str, words: str, height: int, inner: Html) -> Html:
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", words, id=f"{name}-words"),
        inner,
        class_=f"chart {name}",
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-words",
        height=max(height, 0),
    )
