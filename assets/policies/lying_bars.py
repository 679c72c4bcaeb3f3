"""A bar chart of named parts as a data URI: one line each, with its name and number, no plotting library."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

MOST = 12
"""Lines, at most; the others are told as their number."""
SHOWN_AT_ONCE = 1000
"""Characters from which on Dagster's UI hides Markdown behind a click."""
_LINE, _WORDS, _BAR, _CUT = 14, 170, 130, 18


def lying_bars(
    values: Sequence[tuple[str, float]], before: Mapping[str, float] | None = None, unit: str = ""
) -> str:
    """Markdown of a chart with one line per (name, value), from the first on, as many as are shown at once.
    An orange stroke says where a bar ended before."""
    for most in range(min(MOST, len(values)), 0, -1):
        made = _chart(values, most, before or {}, unit)
        if len(made) < SHOWN_AT_ONCE or most == 1:
            return made
    return ""


def _chart(values: Sequence[tuple[str, float]], most: int, before: Mapping[str, float], unit: str) -> str:
    shown = values[:most]
    top = max(max(abs(value), abs(before.get(name, 0))) for name, value in shown) or 1.0
    bars, marks, words = "", "", ""
    for at, (name, value) in enumerate(shown):
        y = at * _LINE
        bars += f"M{_WORDS} {y + 7}h{_BAR * abs(value) / top:.0f}"
        old = before.get(name)
        if old is not None and old != value:
            marks += f"M{_WORDS + _BAR * abs(old) / top:.0f} {y + 1}v12"
        text = name if len(name) <= _CUT else f"{name[: _CUT - 1]}…"
        words += f'<text y="{y + 11}">{escape(text, quote=False)} {_number(value)}</text>'
    rest = f"+{len(values) - most} more" if len(values) > most else ""
    foot = " ".join(part for part in (unit, rest) if part)
    if foot:
        words += f'<text y="{most * _LINE + 11}">{escape(foot, quote=False)}</text>'
    marked = f'<path d="{marks}" stroke="#d70" stroke-width="2"/>' if marks else ""
    # The ink is read on a light and on a dark ground: the page that shows it may be either.
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WORDS + _BAR}" height="{(most + 1) * _LINE}" '
        f'font-family="Arial" font-size="11" fill="#888"><path d="{bars}" stroke="#36c" stroke-width="9"/>'
        f"{marked}{words}</svg>"
    )
    return f"![plot](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"


def _number(value: float) -> str:
    if abs(value) >= 1e12:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"
