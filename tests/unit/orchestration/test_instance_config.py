"""Dagster's instance: the file that is written, and that Dagster accepts it."""

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
    instance_config,
    open_instance,
)
from orchestration.settings import PROJECT_ROOT, Settings

URL = "postgresql+psycopg2://perennial:s3cret@db:5432/perennial"


def production(home: Path) -> Settings:
    return Settings(home=home, env="production", database_url=URL)


def test_workspace__of_the_root__is_the_one_code_location():
    workspace = yaml.safe_load((PROJECT_ROOT / "workspace.yaml").read_text())
    assert workspace == {"load_from": [{"python_module": {"module_name": MODULE, "location_name": LOCATION}}]}


def test_root_file__plain_dagster__keeps_its_state_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    with DagsterInstance.from_config(".") as instance:
        assert instance.get_runs_count() == 0
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
    assert {entry.name for entry in tmp_path.iterdir()} == {"dagster.yaml", ".perennial"}


def test_open_instance__any_working_directory__writes_only_under_the_home(
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


def test_dagster_home__file_was_changed__writes_it_anew_whole(tmp_path: Path):
    settings = Settings(home=tmp_path)
    path = dagster_home(settings) / "dagster.yaml"
    path.write_text("telemetry: {enabled: true}\n")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: dagster_home(settings), range(64)))
    assert [entry.name for entry in path.parent.iterdir()] == ["dagster.yaml"]
    assert yaml.safe_load(path.read_text()) == instance_config(settings)
    before = path.stat()
    dagster_home(settings)
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_instance_config__production__is_accepted_and_names_the_variable_of_the_secret(tmp_path: Path):
    text = (dagster_home(production(tmp_path)) / "dagster.yaml").read_text()
    assert "s3cret" not in text
    assert yaml.safe_load(text)["storage"] == {
        "postgres": {"postgres_url": {"env": "PERENNIAL_DATABASE_URL"}}
    }
    with_schema = InstanceRef.from_dir(str(dagster_home(production(tmp_path))))
    assert "PERENNIAL_DATABASE_URL" in with_schema.storage_data.config_yaml
    assert with_schema.settings["run_monitoring"]["max_resume_run_attempts"] == 0


def test_export_database_url__person_named_another_driver__names_the_driver_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PERENNIAL_DATABASE_URL", "postgresql://perennial:s3cret@db/perennial")
    export_database_url(production(tmp_path))
    assert os.environ["PERENNIAL_DATABASE_URL"] == URL


def test_pyproject__plain_dagster__names_the_same_code_location():
    dagster = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text())["tool"]["dagster"]
    assert (dagster["module_name"], dagster["code_location_name"]) == (MODULE, LOCATION)
