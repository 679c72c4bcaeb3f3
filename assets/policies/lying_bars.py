"""A bar chart of named parts as a data URI: one line each, with its name and number, no plotting library."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

MOST = 12
"""Lines; what is below them is told as their number."""
_LINE, _BAR, _NAME, _NUMBER = 18, 210, 190, 80
_CUT = 30
"""Characters of a name."""
_INK = "#7d8590"
"""Read on a light and on a dark ground: the page that shows it may be either."""


def lying_bars(
    values: Sequence[tuple[str, float]], before: Mapping[str, float] | None = None, unit: str = ""
) -> str:
    """Markdown of a chart with one line per (name, value), the first `MOST` of them. A stroke says how long
    a bar was before."""
    shown = list(values)[:MOST]
    if not shown:
        return ""
    old = before or {}
    top = max(*(abs(value) for _, value in shown), *(abs(old.get(name, 0)) for name, _ in shown)) or 1.0
    lines = [_line(at * _LINE, name, value, old.get(name), top) for at, (name, value) in enumerate(shown)]
    rest = len(values) - len(shown)
    foot = " ".join([unit, f"(and {rest} more)" if rest else ""]).strip()
    height = _LINE * (len(shown) + bool(foot))
    if foot:
        lines.append(f'<text x="{_NAME}" y="{height - 5}">{escape(foot)}</text>')
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_NAME + _BAR + _NUMBER}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="{_INK}">{"".join(lines)}</svg>'
    )
    return f"![{escape(unit or 'parts')}](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"


def _line(y: int, name: str, value: float, before: float | None, top: float) -> str:
    text = name if len(name) <= _CUT else f"{name[: _CUT - 1]}…"
    long = max(_BAR * abs(value) / top, 0.5 if value else 0)
    drawn = (
        f'<text x="{_NAME - 6}" y="{y + 13}" text-anchor="end">{escape(text)}</text>'
        f'<rect x="{_NAME}" y="{y + 3}" width="{long:.1f}" height="{_LINE - 6}" fill="#3b6fd4"/>'
        f'<text x="{_NAME + long + 4:.0f}" y="{y + 13}">{_number(value)}</text>'
    )
    if before is not None and before != value:
        at = _NAME + _BAR * abs(before) / top
        drawn += f'<path d="M{at:.1f} {y + 1}v{_LINE - 2}" stroke="#d97706" stroke-width="2"/>'
    return drawn


def _number(value: float) -> str:
    if abs(value) >= 1e12:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"
