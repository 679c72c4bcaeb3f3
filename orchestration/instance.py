"""Dagster's instance: what `dagster.yaml` says, and where it lives.

`$PERENNIAL_HOME/dagster/dagster.yaml` is written from here with absolute paths. The files a person may
point Dagster at directly say the same and are held to it by a test: `dagster.yaml` in the root (for
plain `dagster dev`) and `deploy/dagster.yaml` (for servers). Secrets are never written, only the name
of the variable that has them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration import environments
from orchestration.settings import Settings

if TYPE_CHECKING:
    from dagster import DagsterInstance

MODULE = "orchestration.definitions"
"""The one code location."""

LOCATION = "perennial"

OPENING_SECONDS = 60
"""How long a process waits for another one that makes Dagster's databases."""

_NOTICE = "# Written by perennial from its settings at every start; changes here are lost.\n"

SHARED: dict[str, Any] = {
    "telemetry": {"enabled": False},
    # Else a sign-up dialog covers the page of every new user.
    "nux": {"enabled": False},
    "concurrency": {
        "runs": {
            "max_concurrent_runs": 4,
            "tag_concurrency_limits": [
                {"key": "tenant", "value": {"applyLimitPerUniqueValue": True}, "limit": 2},
                {"key": "dagster/backfill", "limit": 2},
            ],
        },
        # Pools of ops leak a slot when a worker is killed; pools of runs are freed by the run's end.
        "pools": {"granularity": "run", "default_limit": 1},
    },
    "run_queue": {
        "dequeue_interval_seconds": 1,
        "dequeue_use_threads": True,
        "dequeue_num_workers": 4,
        "max_user_code_failure_retries": 3,
    },
    "sensors": {"use_threads": True, "num_workers": 4},
    "schedules": {"use_threads": True, "num_workers": 2},
    "backfills": {"use_threads": True, "num_workers": 2, "num_submit_workers": 4},
    "run_monitoring": {
        "enabled": True,
        "start_timeout_seconds": 300,
        "max_runtime_seconds": 14400,
        "poll_interval_seconds": 60,
        "free_slots_after_run_end_seconds": 60,
    },
    # Else every event of a run is a DEBUG line on the terminal; the events themselves are kept either way.
    "python_logs": {"python_log_level": "INFO"},
    "retention": {
        "schedule": {"purge_after_days": 30},
        "sensor": {"purge_after_days": {"skipped": 1, "success": 30, "failure": 30, "started": 30}},
    },
}


def embedded_config(base: str) -> dict[str, Any]:
    """SQLite, logs and artifacts under `base`."""
    return {
        # The three parts of `storage: {sqlite: …}` with the same files, so that the event log can be ours.
        "run_storage": {
            "module": "dagster._core.storage.runs",
            "class": "SqliteRunStorage",
            "config": {"base_dir": f"{base}/history"},
        },
        "event_log_storage": {
            "module": "orchestration.event_log",
            "class": "EventLog",
            "config": {"base_dir": f"{base}/history/runs"},
        },
        "schedule_storage": {
            "module": "dagster._core.storage.schedules",
            "class": "SqliteScheduleStorage",
            "config": {"base_dir": f"{base}/schedules"},
        },
        "compute_logs": {
            "module": "dagster._core.storage.local_compute_log_manager",
            "class": "LocalComputeLogManager",
            "config": {"base_dir": f"{base}/storage"},
        },
        "local_artifact_storage": {
            "module": "dagster._core.storage.root",
            "class": "LocalArtifactStorage",
            "config": {"base_dir": base},
        },
        **SHARED,
    }


def production_config() -> dict[str, Any]:
    """Postgres. Logs and artifacts are under DAGSTER_HOME, Dagster's default."""
    return {
        # One variable for ledger and Dagster: they cannot drift apart. The settings write it with the
        # driver that is installed; a bare postgresql:// would make SQLAlchemy look for another one.
        "storage": {"postgres": {"postgres_url": {"env": "PERENNIAL_DATABASE_URL"}}},
        # The ledger decides what is tried again and when; Dagster would do it at once.
        "run_retries": {"enabled": False},
        **SHARED,
        "run_monitoring": {**SHARED["run_monitoring"], "max_resume_run_attempts": 0},
    }


def instance_config(settings: Settings) -> dict[str, Any]:
    return (
        production_config() if settings.env == "production" else embedded_config(str(settings.dagster_home))
    )


def workspace_config(working_directory: Path | None = None) -> dict[str, Any]:
    """A workspace that loads the code in a process of its own."""
    target = {"module_name": MODULE, "location_name": LOCATION}
    if working_directory is not None:
        target["working_directory"] = str(working_directory)
    return {"load_from": [{"python_module": target}]}


def dagster_home(settings: Settings) -> Path:
    """The folder DAGSTER_HOME names, made ready. Cheap and safe to call at every start, by many at once."""
    write_yaml(settings.dagster_home / "dagster.yaml", instance_config(settings))
    return settings.dagster_home


def open_instance(settings: Settings) -> DagsterInstance:
    """Return the instance of these settings, for use in this process; a context manager that closes it."""
    from dagster import DagsterInstance
    from filelock import FileLock

    home = dagster_home(settings)
    if settings.env == "production":
        environments.export_database_url(settings)
        return DagsterInstance.from_config(str(home))
    # Two processes that make the databases at once would note two schema versions, which no process can open.
    with FileLock(home / "storage.lock", timeout=OPENING_SECONDS):
        return DagsterInstance.from_config(str(home))


def write_yaml(path: Path, content: dict[str, Any]) -> None:
    """Put `content` at `path`: whole or not at all, and not touched if it is there already."""
    import yaml

    text = _NOTICE + yaml.safe_dump(content, sort_keys=False)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
