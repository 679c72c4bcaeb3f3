"""Small charts for the metadata of a materialization: Markdown with an SVG as a data URI of at most 2 KB."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

Values = Sequence[tuple[str, float]]

COLUMNS_SHOWN = 40
BARS_SHOWN = 12
SHOWN_AT_ONCE = 1000
"""Characters of Markdown that Dagster's UI shows without a click."""
_WIDTH, _HEIGHT, _WIDEST_COLUMN = 360, 60, 24
_LINE, _NAMES, _BARS, _LONGEST_NAME = 14, 170, 130, 18


def column_chart(values: Values) -> str:
    """A chart with a column for each (label, value), of the last ones if there are too many."""
    shown = list(values)[-COLUMNS_SHOWN:]
    if not shown:
        return ""
    largest = max(value for _, value in shown) or 1.0
    step = min(_WIDTH // len(shown), _WIDEST_COLUMN)
    # One column after the other, as short as SVG can say it: the UI shows no longer Markdown without a click.
    columns = "".join(f"v-{h}h{step - 2}v{h}h2" for _, value in shown for h in [_up(value, largest)])
    first, last = (escape(label, quote=False) for label in (shown[0][0], shown[-1][0]))
    return _markdown(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT + 14}">'
        f'<path d="M0 {_HEIGHT}{columns}" fill="#36c"/><g font-family="Arial" font-size="10" fill="#888">'
        f'<text y="{_HEIGHT + 12}">{first}</text>'
        f'<text x="{max(step * len(shown), _NAMES)}" y="{_HEIGHT + 12}" text-anchor="end">{last}</text></g>'
        "</svg>"
    )


def _up(value: float, largest: float) -> int:
    return round(_HEIGHT * value / largest)


def bar_chart(values: Values, before: Mapping[str, float] | None = None, unit: str = "") -> str:
    """A chart with a bar for each (name, value), of the first ones if there are too many.

    An orange mark shows where a bar ended before. The last line says how many bars are not shown.
    """
    for count in range(min(BARS_SHOWN, len(values)), 0, -1):
        chart = _bars(values, count, before or {}, unit)
        if len(chart) < SHOWN_AT_ONCE or count == 1:
            return chart
    return ""


def _bars(values: Values, count: int, before: Mapping[str, float], unit: str) -> str:
    shown = values[:count]
    largest = max(max(abs(value), abs(before.get(name, 0))) for name, value in shown) or 1.0
    bars, marks, texts = "", "", ""
    for n, (name, value) in enumerate(shown):
        y = n * _LINE
        bars += f"M{_NAMES} {y + 7}h{_BARS * abs(value) / largest:.0f}"
        old = before.get(name)
        if old is not None and old != value:
            marks += f"M{_NAMES + _BARS * abs(old) / largest:.0f} {y + 1}v12"
        text = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        texts += f'<text y="{y + 11}">{escape(text, quote=False)} {_number(value)}</text>'
    rest = f"+{len(values) - count} more" if len(values) > count else ""
    if last_line := " ".join(part for part in (unit, rest) if part):
        texts += f'<text y="{count * _LINE + 11}">{escape(last_line, quote=False)}</text>'
    marked = f'<path d="{marks}" stroke="#d70" stroke-width="2"/>' if marks else ""
    # Grey is readable on the light and on the dark ground of the UI.
    return _markdown(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_NAMES + _BARS}" height="{(count + 1) * _LINE}" '
        f'font-family="Arial" font-size="11" fill="#888"><path d="{bars}" stroke="#36c" stroke-width="9"/>'
        f"{marked}{texts}</svg>"
    )


def _markdown(svg: str) -> str:
    return f"![plot](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"


def _number(value: float) -> str:
    if abs(value) >= 1e12:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"
