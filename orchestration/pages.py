"""Writes the generated pages of the documentation: `python -m orchestration.pages FOLDER`, or `make docs`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from orchestration import reasons_page, settings_page
from orchestration.registry import MODULES, find_domain


def pages() -> Mapping[str, Callable[[], str]]:
    """What renders each page, by file name."""
    of_domains = {name: page for domain in MODULES for name, page in find_domain(domain).pages.items()}
    return {"settings.md": settings_page.render, "reason-codes.md": reasons_page.render, **of_domains}


if __name__ == "__main__":
    for name, render in pages().items():
        (Path(sys.argv[1]) / name).write_text(render(), encoding="utf-8")
