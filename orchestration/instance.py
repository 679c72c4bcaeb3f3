"""Dagster's instance: its configuration, and where it is.

The configuration is a file of this package, `dagster.embedded.yaml` or `dagster.production.yaml`. It is
written to `$PERENNIAL_HOME/dagster/dagster.yaml`, with absolute paths and the names of secrets only.
"""

from __future__ import annotations

from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from orchestration import environments
from orchestration.settings import Settings

if TYPE_CHECKING:
    from dagster import DagsterInstance

MODULE = "orchestration.definitions"
"""The one code location."""
LOCATION = "perennial"
REPOSITORY = "__repository__"
"""The name that Dagster gives to the definitions of a module."""
OPENING_SECONDS = 60
"""How long a process waits for another one that makes Dagster's databases."""

_NOTICE = "# Written by perennial from its settings at every start; changes here are lost.\n"
_STATE = ".perennial/dagster"
"""The state folder in the embedded file, which plain `dagster dev` uses."""


def instance_config(settings: Settings) -> dict[str, Any]:
    """Return the content of the `dagster.yaml` of these settings."""
    if settings.env == "production":
        return _packaged("production")
    return embedded_config(str(settings.dagster_home))


def embedded_config(folder: str) -> dict[str, Any]:
    """Return the embedded configuration with its state in `folder`."""
    config = _packaged("embedded")
    for part in config.values():
        if (paths := part.get("config")) is not None:
            paths["base_dir"] = paths["base_dir"].replace(_STATE, folder)
    return config


def _packaged(environment: str) -> dict[str, Any]:
    import yaml

    text = resources.files("orchestration").joinpath(f"dagster.{environment}.yaml").read_text("utf-8")
    config: dict[str, Any] = yaml.safe_load(text)
    return config


def dagster_home(settings: Settings) -> Path:
    """Return the folder for DAGSTER_HOME with its configuration written; safe to call by many at once."""
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


def note_origin(instance: DagsterInstance, job: str) -> None:
    """Have the runs that this process creates belong to the code location, as those of the daemon do.

    The UI shows other runs in its list of runs only: not on its Timeline, and nobody can start them again.
    """
    from assets.policies.dagster_private import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin

    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(LOCATION), REPOSITORY)
    create = partial(instance.create_run_for_job, remote_job_origin=repository.get_job_origin(job))
    instance.create_run_for_job = create  # type: ignore[method-assign]


def write_yaml(path: Path, content: dict[str, Any]) -> None:
    """Write `content` to `path`, whole or not at all; a file with this content is left alone."""
    import yaml

    text = _NOTICE + yaml.safe_dump(content, sort_keys=False)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
