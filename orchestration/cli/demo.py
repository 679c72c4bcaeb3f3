"""`perennial demo`: the demonstration of each domain, and whether everything is healthy afterwards."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from domain.shared.health import is_healthy
from orchestration.cli.output import answer, document, say
from orchestration.health import platform_findings
from orchestration.registry import enabled

if TYPE_CHECKING:
    from orchestration.settings import Settings


def run_demo(settings: Settings, *, json: bool) -> int:
    """Run the demonstrations in this process; a second one does only what it undoes itself."""
    began = time.monotonic()
    parts = [domain.demo(settings, shown=not json) for domain in enabled(settings) if domain.demo]
    found = platform_findings(settings)
    healthy = is_healthy(found)
    seconds = time.monotonic() - began
    if json:
        shown = {name: value for part in parts for name, value in part.document.items()}
        document({"healthy": healthy, "seconds": round(seconds, 1), **shown})
    else:
        health = "healthy" if healthy else "NOT healthy"
        answer(f"{health} after {seconds:.0f} s; `make up` shows it in the browser")
    for finding in found:
        say(f"{finding.health}: {finding.subject}: {finding.reason}")
    return 0 if healthy and all(part.ok for part in parts) else 1
