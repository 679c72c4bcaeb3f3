"""The demo: a market warehouse with a hole that heals, then a university's carbon report. Headless."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from domain.shared.error import InvalidInput
from orchestration.cli.demo_carbon import show_carbon
from orchestration.cli.demo_market import show_market
from orchestration.cli.output import answer, document, say
from orchestration.health import platform_findings

if TYPE_CHECKING:
    from orchestration.settings import Settings


def run_demo(settings: Settings, *, json: bool) -> int:
    """Everything a first look should show, in one process. Run again it does only what it undoes itself."""
    if settings.source != "sandbox":
        raise InvalidInput(
            "the demo makes a hole in the lake, so it runs on the sandbox only",
            remedy="unset TUSHARE_TOKEN or set PERENNIAL_SOURCE=sandbox, with a PERENNIAL_HOME of its own",
        )
    began = time.monotonic()
    market = show_market(settings, shown=not json)
    carbon = show_carbon(settings, shown=not json)
    found = platform_findings(settings)
    seconds = time.monotonic() - began
    if json:
        document(
            {
                "healthy": not found,
                "seconds": round(seconds, 1),
                "tables": market.tables,
                "carbon": carbon.told,
            }
        )
    else:
        health = "NOT healthy" if found else "healthy"
        answer(f"{health} after {seconds:.0f} s; `make up` shows it in the browser")
    for finding in found:
        say(f"{finding.health}: {finding.subject}: {finding.reason}")
    return 1 if found or not market.well or not carbon.well else 0
