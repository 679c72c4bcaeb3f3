"""The sandbox process of a home, which stands in for the sources of one or more domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.domain import Sandbox
from orchestration.registry import enabled

if TYPE_CHECKING:
    from orchestration.settings import Settings


def home_sandbox(settings: Settings, table: str) -> Sandbox:
    """Return the sandbox of this home, whether it runs or not; `table` is what may be broken in the lake."""
    from resources.sandbox.process import find_sandbox, port_file

    url = find_sandbox(settings.home) or f"http://127.0.0.1:{settings.sandbox_port}"
    return Sandbox(url, settings.sandbox_port, port_file(settings.home), table)


def started_sandboxes(settings: Settings) -> list[Sandbox]:
    """Return the sandboxes that `perennial up` starts: each once, however many domains it stands in for."""
    found = [sandbox for domain in enabled(settings) if (sandbox := domain.sandbox(settings))]
    return list({sandbox.port: sandbox for sandbox in found if sandbox.port}.values())
