"""A home that keeps one domain: nothing of the others is loaded, shown or done."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from orchestration.build import build_definitions
from orchestration.settings import Settings
from tests.command import said
from tests.integration.services.carbon.carbon_app import CarbonApp


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CarbonApp:
    monkeypatch.setenv("PERENNIAL_DOMAINS", "carbon")
    return CarbonApp(tmp_path, monkeypatch)


def _names(settings: Settings) -> tuple[set[str], set[str]]:
    """The groups of the assets, and the domains of sensors and schedules."""
    code = build_definitions(settings).get_repository_def()
    groups = {spec.group_name for definition in code.assets_defs_by_key.values() for spec in definition.specs}
    passes: list[dg.SensorDefinition | dg.ScheduleDefinition] = [*code.sensor_defs, *code.schedule_defs]
    return groups, {each.name.split("_", 1)[0] for each in passes}


def test_definitions__one_domain_is_on__have_only_its_assets(tmp_path: Path) -> None:
    assert _names(Settings(home=tmp_path)) == (
        {"market", "carbon", "refs", "ops"},
        {"market", "carbon", "references", "work", "upkeep"},
    )
    assert _names(Settings(home=tmp_path, domains=("carbon",))) == (
        {"carbon", "ops"},
        {"carbon", "work", "upkeep"},
    )
    assert _names(Settings(home=tmp_path, domains=("market",))) == (
        {"market", "ops"},
        {"market", "work", "upkeep"},
    )


def test_status__market_is_off__is_healthy(app: CarbonApp) -> None:
    app.furnish()
    status = said("status", "--json")
    assert status.code == 0, status.out
    assert status.json["findings"] == []
    parts = {part["part"]: part["ok"] for part in said("doctor", "--json").json}
    assert "source" not in parts
    assert all(parts.values())


@pytest.mark.parametrize(
    "command", [("market", "daily"), ("plan", "market"), ("market", "backfill", "--from", "2024-01-02")]
)
def test_command__its_domain_is_off__is_refused(app: CarbonApp, command: tuple[str, ...]) -> None:
    refused = said(*command)
    assert refused.code == 2
    assert "the domain market is off: PERENNIAL_DOMAINS is carbon" in refused.err
    assert "add market to it" in refused.err


def test_check__its_domain_is_off__fails(app: CarbonApp) -> None:
    """Cron must not take a market that nobody keeps for a healthy one."""
    checked = said("check", "market")
    assert checked.code == 1
    assert checked.out.startswith("ALERT market: the domain market is off")


def test_upload__carbon_is_off__is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = CarbonApp(tmp_path, monkeypatch)
    monkeypatch.setenv("PERENNIAL_DOMAINS", "market")
    refused = app.upload("factors", "x")
    assert refused.code == 2
    assert "the domain carbon is off" in refused.err
    assert not (app.home / "uploads").exists()
