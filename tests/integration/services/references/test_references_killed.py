"""A drain that dies loses nothing, whatever kills it: the next command does the rest."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from orchestration.instance import open_instance
from tests.integration.services.references.references_app import ReferencesApp, of
from tests.integration.services.references.shelf import PATIENCE, numbered

ROOT = Path(__file__).parents[4]


def heal(app: ReferencesApp) -> subprocess.Popen[str]:
    """`perennial references heal` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "orchestration.cli", "references", "heal"],
        cwd=ROOT,
        env=app.settings.environment(),
        stderr=subprocess.DEVNULL,
        text=True,
    )


def ended_runs(app: ReferencesApp) -> set[dg.DagsterRunStatus]:
    with open_instance(app.settings) as instance:
        return {run.status for run in instance.get_runs() if "documents" in str(run.asset_selection)}


def test_heal__killed_while_it_ingests__next_one_does_the_rest(app: ReferencesApp, tmp_path: Path):
    texts = numbered(range(20)) | {"fatal": f"kill:{tmp_path}/died"}
    app.shelves["east"].holds(texts)
    victim = heal(app)
    assert victim.wait(PATIENCE) == -signal.SIGKILL
    assert app.texts() == {}
    assert {row.status for row in app.jobs().values()} == {"running"}
    app.heal()
    assert app.texts() == of("east", texts)
    assert {(row.status, row.deaths, row.attempts) for row in app.jobs().values()} == {("completed", 1, 1)}
    assert ended_runs(app) == {dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_heal__terminated_while_it_ingests__gives_the_lease_back(
    app: ReferencesApp, tmp_path: Path, how: signal.Signals
):
    mark = tmp_path / "hangs"
    texts = numbered(range(20)) | {"slow": f"hang:{mark}"}
    app.shelves["east"].holds(texts)
    victim = heal(app)
    deadline = time.monotonic() + PATIENCE
    while not mark.exists():
        assert victim.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    victim.send_signal(how)
    assert victim.wait(PATIENCE / 2) != 0
    assert {(row.status, row.attempts) for row in app.jobs().values()} == {("queued", 0)}
    app.heal()
    assert app.texts() == of("east", texts)
    assert ended_runs(app) == {dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.SUCCESS}
