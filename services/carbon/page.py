"""The page of a report: one HTML document that needs nothing else, to be sent on, printed and kept.

It has no script, loads nothing and forbids both, whatever it may be opened with.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template

from services.carbon.page_charts import patterns
from services.carbon.page_data import Lock, PageData, page_data
from services.carbon.page_figures import figures
from services.carbon.page_markup import joined, tag, text
from services.carbon.page_origins import calculation, methods, missing, sources
from services.carbon.page_sections import categories, head, modules, overview, years
from services.carbon.page_units import units
from services.carbon.report import Report

__all__ = ["Lock", "PageData", "page", "page_data"]


def page(report: Report, data: PageData) -> str:
    of = figures(report, data)
    parts = (
        ("total", "Total", overview(of)),
        ("modules", "Modules", modules(of)),
        ("categories", "Categories", categories(of, data)),
        ("years", "Years", years(of)),
        ("units", "Units", units(of)),
        ("missing", "Missing or old", missing(report, of, data)),
        ("methods", "Methods", methods(of, data)),
        ("sources", "Sources", sources(of, data)),
        ("calculation", "Calculation", calculation(of, data)),
    )
    shown = [part for part in parts if part[2]]
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in shown)
    title = [f"Carbon report {of.year}", *([of.unit] if of.unit else []), data.institution]
    return _template().substitute(
        title=text(" – ".join(title)),
        patterns=patterns(),
        head=head(of, data),
        contents=tag("nav", tag("ul", *links), aria_label="Contents"),
        sections=joined(part for _, _, part in shown),
    )


@cache
def _template() -> Template:
    return Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
