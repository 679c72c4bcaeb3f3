"""What is read of Dagster's own tables, without Dagster."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestration.dagster_storage import read_dagster
from orchestration.environments import load_settings

BEAT = '{"timestamp": 1795176000.0}'


@pytest.mark.parametrize(
    "body", [None, "null", "", "{", "{}", "[]", '{"timestamp": null}', '{"timestamp": 1e30}']
)
def test_read_dagster__heartbeat_without_a_moment__is_left_out(tmp_path: Path, body: str | None) -> None:
    settings = load_settings({"PERENNIAL_HOME": str(tmp_path)})
    history = settings.dagster_home / "history"
    history.mkdir(parents=True)
    with closing(sqlite3.connect(history / "runs.db")) as connection, connection:
        connection.execute("CREATE TABLE daemon_heartbeats (body TEXT)")
        connection.execute("INSERT INTO daemon_heartbeats VALUES (?)", (body,))
    assert read_dagster(settings).heartbeat is None
    with closing(sqlite3.connect(history / "runs.db")) as connection, connection:
        connection.execute("INSERT INTO daemon_heartbeats VALUES (?)", (BEAT,))
    assert read_dagster(settings).heartbeat == datetime.fromtimestamp(1795176000, UTC)
