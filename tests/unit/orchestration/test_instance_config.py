"""Dagster's instance: the rendered file, the files in the repository, and that Dagster accepts them."""

import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance
from dagster._core.instance.ref import InstanceRef

from orchestration.environments import export_database_url
from orchestration.instance import (
    LOCATION,
    MODULE,
    dagster_home,
    embedded_config,
    instance_config,
    open_instance,
    production_config,
    workspace_config,
)
from orchestration.settings import PROJECT_ROOT, Settings

URL = "postgresql+psycopg2://perennial:s3cret@db:5432/perennial"


def production(home: Path) -> Settings:
    return Settings(home=home, env="production", database_url=URL)


def test_the_root_file_is_the_embedded_instance_with_relative_folders():
    assert yaml.safe_load((PROJECT_ROOT / "dagster.yaml").read_text()) == embedded_config(
        ".perennial/dagster"
    )


def test_the_servers_file_is_the_production_instance():
    assert yaml.safe_load((PROJECT_ROOT / "deploy/dagster.yaml").read_text()) == production_config()


def test_the_root_workspace_is_the_one_code_location():
    assert yaml.safe_load((PROJECT_ROOT / "workspace.yaml").read_text()) == workspace_config()


def test_the_root_file_loads_as_an_instance_that_keeps_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    with DagsterInstance.from_config(".") as instance:
        assert instance.get_runs_count() == 0
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
    assert {entry.name for entry in tmp_path.iterdir()} == {"dagster.yaml", ".perennial"}


def test_opening_an_instance_writes_state_only_under_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    home = tmp_path / "a home with blanks"
    with open_instance(Settings(home=home)) as instance:
        assert instance.run_monitoring_enabled
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 1
        logs = instance.compute_log_manager.get_captured_local_path(["run", "step"], "out")
    assert Path(logs).is_relative_to(home / "dagster")
    assert list(working.iterdir()) == []


def test_rendering_again_leaves_the_file_alone(tmp_path: Path):
    settings = Settings(home=tmp_path)
    path = dagster_home(settings) / "dagster.yaml"
    before = path.stat()
    dagster_home(settings)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_rendering_replaces_a_file_that_says_something_else(tmp_path: Path):
    settings = Settings(home=tmp_path)
    path = dagster_home(settings) / "dagster.yaml"
    path.write_text("telemetry: {enabled: true}\n")
    dagster_home(settings)
    assert yaml.safe_load(path.read_text()) == instance_config(settings)


def test_many_may_render_at_once_and_leave_one_whole_file(tmp_path: Path):
    settings = Settings(home=tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: dagster_home(settings), range(64)))
    folder = tmp_path / "dagster"
    assert [entry.name for entry in folder.iterdir()] == ["dagster.yaml"]
    assert yaml.safe_load((folder / "dagster.yaml").read_text()) == instance_config(settings)


def test_production_names_the_variable_of_the_secret_and_never_the_secret(tmp_path: Path):
    text = (dagster_home(production(tmp_path)) / "dagster.yaml").read_text()
    assert "s3cret" not in text
    assert yaml.safe_load(text)["storage"] == {
        "postgres": {"postgres_url": {"env": "PERENNIAL_DATABASE_URL"}}
    }


def test_dagster_accepts_the_production_file(tmp_path: Path):
    with_schema = InstanceRef.from_dir(str(dagster_home(production(tmp_path))))
    assert "PERENNIAL_DATABASE_URL" in with_schema.storage_data.config_yaml
    assert with_schema.settings["run_monitoring"]["max_resume_run_attempts"] == 0


def test_dagster_connects_with_the_driver_of_the_settings_not_with_what_a_person_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PERENNIAL_DATABASE_URL", "postgresql://perennial:s3cret@db/perennial")
    export_database_url(production(tmp_path))
    assert os.environ["PERENNIAL_DATABASE_URL"] == URL


def test_the_code_location_has_the_same_name_however_it_is_started():
    dagster = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text())["tool"]["dagster"]
    assert (dagster["module_name"], dagster["code_location_name"]) == (MODULE, LOCATION)
