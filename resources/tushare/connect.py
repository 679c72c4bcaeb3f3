"""From settings to a connected client: which address, which pace."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from resources.http.faults import Timeouts
from resources.tushare.client import TushareClient
from resources.tushare.pace import Pacer, calls_per_minute
from resources.tushare.sandbox_process import ensure_sandbox

UNLIMITED = "sandbox-unlimited"
"""The sandbox's token without a rate, for benchmarks."""


def connect(
    *,
    home: Path,
    source: str,
    token: str,
    url: str,
    points: int,
    calls_per_minute: int,
    timeout_seconds: float,
    engine: Engine,
) -> TushareClient:
    """A client of the configured source; a sandbox nobody started is started now."""
    if not url and source == "sandbox":
        url = ensure_sandbox(home)
    return TushareClient(
        url=url or None,
        token=token,
        points=points,
        pacer=_pacer(source, token, points, calls_per_minute, engine),
        timeout=Timeouts(connect=min(10.0, timeout_seconds), read=timeout_seconds),
    )


def _pacer(source: str, token: str, points: int, per_minute: int, engine: Engine) -> Pacer:
    if source == "sandbox" and token == UNLIMITED:
        return Pacer.unlimited()
    return Pacer(engine, per_minute=per_minute or calls_per_minute(points), source=source)
