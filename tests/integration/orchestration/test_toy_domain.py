"""A domain that registers itself with one line appears everywhere, and no other file was edited for it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from starlette.types import Message

from orchestration import registry
from orchestration.api.app import build_app
from orchestration.build import build_definitions
from orchestration.cli.operations import prepare
from orchestration.environments import load_settings
from orchestration.pages import pages, settings_page
from tests.command import said
from tests.settings import make_settings


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.MODULES, "toy", "tests.toy.domain")
    monkeypatch.setenv("PERENNIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERENNIAL_DOMAINS", "toy")


@pytest.fixture
def greeted() -> None:
    assert said("toy", "greet").out == "greeted: True\n"


def test_definitions__beside_every_other_domain__have_asset_sensor_and_retention(tmp_path: Path):
    defs = build_definitions(make_settings(home=tmp_path))
    graph, jobs = defs.resolve_asset_graph(), defs.get_repository_def()
    asset, retention = dg.AssetKey(["toy", "greetings"]), dg.AssetKey(["ops", "toy_retention"])
    assert {asset, retention} <= graph.get_all_asset_keys()
    assert {"toy_sensor", "market_gap_fill_sensor", "work_sweep_sensor"} <= {s.name for s in jobs.sensor_defs}
    [upkeep] = [s for s in defs.schedules or () if s.name == "upkeep_schedule"]
    assert retention in upkeep.job.selection.resolve(graph)


@pytest.mark.usefixtures("greeted")
def test_sql__toy_was_materialized__shows_its_table_and_view():
    assert said("sql", "SELECT greeting FROM toy.greetings", "--json").json == [{"greeting": "hello"}]
    assert said("sql", "SELECT greeting FROM toy.loud", "--json").json == [{"greeting": "HELLO"}]


def test_status_and_plan__nobody_was_greeted__have_its_finding():
    said("migrate")
    [finding] = said("status", "--json").json["findings"]
    assert (finding["domain"], finding["reason_code"]) == ("toy", "never_greeted")
    [verdict] = said("plan", "toy", "--json").json["verdicts"]
    assert (verdict["table"], verdict["state"]) == ("greetings", "missing")


@pytest.mark.usefixtures("greeted")
def test_status__greeted__is_healthy_until_the_setting_changes(monkeypatch: pytest.MonkeyPatch):
    assert said("status", "--json").json["healthy"]
    monkeypatch.setenv("PERENNIAL_TOY_GREETING", "good morning")
    assert said("plan", "toy", "--json").json["due"] == 1


@pytest.mark.usefixtures("greeted")
def test_work__greeted__has_its_completed_work():
    [row] = said("work", "list", "--json").json
    assert (row["kind"], row["status"]) == ("toy.greet", "completed")


def test_doctor_and_pools__registered__have_its_check_and_limit():
    said("migrate")
    assert said("pools", "apply", "--json").json["declared"] == {"toy": 2}
    parts = {part["part"]: part for part in said("doctor", "--json").json}
    assert parts["toy"]["ok"]
    assert parts["toy"]["result"] == "says hello"


def test_settings__registered__are_read_documented_and_checked(monkeypatch: pytest.MonkeyPatch):
    assert "| `PERENNIAL_TOY_GREETING` | `hello` | What it writes. | `good morning` |" in settings_page()
    assert "PERENNIAL_TOY_GREETING" in {row["setting"] for row in said("settings", "--json").json}
    monkeypatch.setenv("PERENNIAL_TOY_GREETNG", "x")
    assert "did you mean PERENNIAL_TOY_GREETING?" in said("status").err


HOST = (b"host", b"127.0.0.1")


def get(path: str) -> dict[str, Any]:
    """What the HTTP interface answers, without a server."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }
    asyncio.run(build_app(load_settings())(scope, receive, send))
    answer: dict[str, Any] = json.loads(sent[-1]["body"])
    return answer


def test_api__registered__answers_its_call():
    said("migrate")
    assert get("/toy/greeting") == {"greeting": "hello"}
    assert "get" in get("/openapi.json")["paths"]["/toy/greeting"]
    assert get("/nothing")["code"] == "no_such_call"


def test_demo_pages_and_up__registered__have_its_part(tmp_path: Path):
    prepare(load_settings())
    assert (tmp_path / "home" / "toy").is_dir()
    assert said("toy", "greet").code == 0
    assert said("demo", "--json").json["toy"] == {"shown": False, "greeting": "hello"}
    assert pages()["toy.md"]() == "# The toy\n"
    assert "Greet the world." in said("--help").out


def test_command__toy_is_off__is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PERENNIAL_DOMAINS", "carbon")
    refused = said("toy", "greet")
    assert refused.code == 2
    assert "the domain toy is off" in refused.err
