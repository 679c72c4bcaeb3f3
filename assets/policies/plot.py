"""A small bar chart as a data URI: drawn by hand, at most about 2 KB, no plotting library."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, MOST = 480, 60, 60
WIDEST = 24
"""A chart of one day is a bar, not a wall."""


def bars(values: Sequence[tuple[str, float]], ceiling: float | None = None) -> str:
    """Markdown of a chart with one bar per (label, value), the newest `MOST` of them."""
    shown = list(values)[-MOST:]
    if not shown:
        return ""
    top = max(ceiling or 0.0, *(v for _, v in shown)) or 1.0
    step = WIDTH / len(shown)
    path = "".join(
        f"M{i * step + step / 2:.0f} {HEIGHT}V{HEIGHT - HEIGHT * value / top:.0f}"
        for i, (_, value) in enumerate(shown)
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT + 14}">'
        f'<path d="{path}" stroke="#3b6fd4" stroke-width="{min(max(step - 1, 1), WIDEST):.1f}"/>'
        f'<text y="{HEIGHT + 12}" font-size="10">{escape(shown[0][0])}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 12}" font-size="10" text-anchor="end">{escape(shown[-1][0])}</text>'
        "</svg>"
    )
    return f"![rows](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"
