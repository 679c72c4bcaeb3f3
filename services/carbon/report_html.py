"""The page of a report as HTML: one document that needs nothing else, to be sent on, printed and kept.

Here are the template environment and the number formats; the texts are in `templates/`. The document has no
script, loads nothing and forbids both.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from services.carbon.report import harmless
from services.carbon.report_view import SCOPES, ReportView

THIN = "\N{NARROW NO-BREAK SPACE}"
NONE = "\N{EN DASH}"
CO2E = "CO\N{SUBSCRIPT TWO}e"
T_CO2E = f"t{THIN}{CO2E}"
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that no document may have, nor an encoder accepts."""


def render(view: ReportView) -> str:
    return _environment().get_template("report.html").render(view=view, SCOPES=SCOPES, decimals=view.decimals)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates"), encoding="utf-8"),
        autoescape=True,
        finalize=_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    formats = (grouped, counted, share, change, tonnes, in_tonnes, prose, keys)
    environment.filters.update({format_.__name__: format_ for format_ in formats})
    environment.globals.update(NONE=NONE, CO2E=CO2E, T_CO2E=T_CO2E)
    return environment


def _text(value: object) -> object:
    """A text that somebody wrote, so that no spreadsheet runs it and every encoder accepts it."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return harmless(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", value.strip()))
    return value


def grouped(number: Decimal | int, decimals: int = 0) -> str:
    """Thousands parted by a space that no line breaks at; a minus that no spreadsheet takes for a formula."""
    plain = f"{Decimal(number):,.{decimals}f}"
    return plain.replace(",", THIN).replace("-", "\N{MINUS SIGN}")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 type`, `2 types`."""
    return f"{grouped(number)} {one if number == 1 else many or f'{one}s'}"


def share(part: int, whole: int) -> str:
    return f"{grouped(100 * Decimal(part) / whole, 1)}{THIN}%" if whole else NONE


def change(new: int, old: int | None) -> Markup:
    """Markup, since its plus is no formula."""
    sign = "+" if old and new > old else ""
    return Markup("{}{}").format(sign, share(new - old, old) if old else NONE)


def tonnes(mg: int, decimals: int) -> str:
    """Milligrams as tonnes, rounded from whole milligrams and not from doubles."""
    if mg == 0:
        return "0"
    smallest, mass = Decimal(1).scaleb(-decimals), Decimal(mg).scaleb(-9)
    if abs(mass) < smallest / 2:
        return f"<{THIN}{grouped(smallest, decimals)}"
    return grouped(mass, decimals)


def in_tonnes(mg: int, decimals: int) -> str:
    return f"{tonnes(mg, decimals)}{THIN}{T_CO2E}"


def prose(text: str) -> Markup:
    """A text with what stands between backticks as code."""
    parts = (
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part)
        for n, part in enumerate(text.split("`"))
    )
    return Markup("").join(parts)


def keys(classification: str | None) -> str:
    """What would choose a factor, for people."""
    if classification is None:
        return "entries that have changed since"
    return ", ".join(f"{name} {value}" for name, value in json.loads(classification).items())
