"""HTML that cannot be broken out of: every string is a text and escaped, unless `tag` made it.

What comes out is well-formed XML besides, so that a test can read it strictly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What no document may have, nor an encoder takes."""


class Html(str):
    """Markup. Any other string is a text."""

    __slots__ = ()


def text(value: object) -> Html:
    if isinstance(value, Html):
        return value
    return Html(escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value))))


def joined(parts: Iterable[object]) -> Html:
    return Html("".join(map(text, parts)))


def tag(name: str, *content: object, **attributes: object) -> Html:
    """An element. `class_` is class, `aria_label` is aria-label; None and False leave an attribute out."""
    said = [
        f' {key.rstrip("_").replace("_", "-")}="{text("" if value is True else value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    ]
    return Html(f"<{name}{''.join(said)}>{joined(content)}</{name}>")


@dataclass(frozen=True)
class Head:
    """A column of a table."""

    title: str
    number: bool = True


def table(
    caption: str, heads: Sequence[Head], rows: Sequence[Sequence[object]], total: Sequence[object] = ()
) -> Html:
    """A table in a box of its own that scrolls where it is too wide. The first cell of a row names it."""
    head = tag("tr", *(tag("th", h.title, scope="col", class_="n" if h.number else None) for h in heads))
    foot = tag("tfoot", _row(heads, total)) if total else ""
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *(_row(heads, row) for row in rows)),
        foot,
    )
    return tag("div", inner, class_="scroll", role="region", aria_label=caption, tabindex=0)


def _row(heads: Sequence[Head], states: Sequence[object]) -> Html:
    first, *others = states
    return tag(
        "tr",
        tag("th", first, scope="row"),
        *(
            tag("td", state, class_="n" if head.number else None)
            for head, state in zip(heads[1:], others, strict=True)
        ),
    )
