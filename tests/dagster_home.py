"""Dagster homes of tests: of our configuration or as shipped, and with less of Dagster's own work."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage

from orchestration.instance import embedded_config, write_yaml


def opened(folder: Path, *, shipped: bool = False) -> dg.DagsterInstance:
    config = embedded_config(str(folder))
    if shipped:
        for part in ("run_storage", "event_log_storage", "schedule_storage"):
            del config[part]
        config["storage"] = {"sqlite": {"base_dir": str(folder)}}
    write_yaml(folder / "dagster.yaml", config)
    return dg.DagsterInstance.from_config(str(folder))


@contextmanager
def light_dagster() -> Iterator[None]:
    """In-process runs at two thirds of their processor time.

    Dagster makes an engine per statement, which compiles the statement anew, and starts four processes per
    run that copy its output to the terminal.
    """
    with pytest.MonkeyPatch.context() as patch:
        for storage in (sqlite_event_log, sqlite_run_storage):
            patch.setattr(storage, "create_engine", _engine)
        patch.setattr("dagster._core.execution.compute_logs.tail_to_stream", _no_tail)
        yield


def _engine(url: str, *, poolclass: Any, connect_args: dict[str, Any] | None = None) -> sa.Engine:
    return _kept_engine(url, poolclass, tuple((connect_args or {}).items()))


@cache
def _kept_engine(url: str, poolclass: Any, connect_args: tuple[tuple[str, Any], ...]) -> sa.Engine:
    return sa.create_engine(url, poolclass=poolclass, connect_args=dict(connect_args))


@contextmanager
def _no_tail(path: str, stream: object) -> Iterator[tuple[None, None]]:
    yield None, None
