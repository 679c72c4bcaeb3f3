"""What `perennial up` refuses before it starts anything, and what exactly it starts."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.cli.up import (
    answers,
    code_command,
    daemon_command,
    free_port,
    reachable,
    run_up,
    sandbox_command,
    ui_command,
    ui_url,
)
from orchestration.supervisor import only_one
from tests.settings import make_settings


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_ports_in_use_are_told_by_setting_before_anything_starts(
    tmp_path: Path, busy_port: int, capsys: pytest.CaptureFixture[str]
):
    settings = make_settings(home=tmp_path, ui_port=busy_port, sandbox_port=busy_port)
    assert run_up(settings, before_start=lambda: pytest.fail("started")) == 1
    said = capsys.readouterr().out
    assert f"port {busy_port} on 127.0.0.1 is in use" in said
    assert "PERENNIAL_UI_PORT" in said
    assert "PERENNIAL_SANDBOX_PORT" in said
    assert not (tmp_path / "logs").exists()


def test_the_sandboxs_port_does_not_matter_when_the_source_is_elsewhere(
    tmp_path: Path, busy_port: int, capsys: pytest.CaptureFixture[str]
):
    settings = make_settings(
        home=tmp_path, ui_port=busy_port, sandbox_port=busy_port, tushare_url="http://exchange.invalid:1"
    )
    assert run_up(settings) == 1
    assert "PERENNIAL_SANDBOX_PORT" not in capsys.readouterr().out


def test_an_address_that_is_not_ours_is_told_with_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_up(make_settings(home=tmp_path, ui_host="192.0.2.1", ui_port=free_port())) == 1
    assert "cannot listen on 192.0.2.1" in capsys.readouterr().out


def test_a_second_up_on_the_same_home_says_who_runs_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with only_one(tmp_path / "up.lock"):
        assert run_up(make_settings(home=tmp_path)) == 1
    assert f"already running on {tmp_path}" in capsys.readouterr().out


def test_no_secret_is_on_a_command_line(tmp_path: Path):
    settings = make_settings(
        home=tmp_path,
        env="production",
        database_url="postgresql+psycopg2://u:s3cret@h/d",
        tushare_token="t0ken",
    )
    workspace = tmp_path / "workspace.yaml"
    commands = [
        sandbox_command(settings),
        code_command(1, settings),
        ui_command(settings, workspace),
        daemon_command(settings, workspace),
    ]
    words = [word for command in commands for word in command.argv]
    assert not [word for word in words if "s3cret" in word or "t0ken" in word]


def test_the_address_a_person_is_given_leads_to_the_ui(tmp_path: Path):
    assert ui_url(make_settings(home=tmp_path)) == "http://127.0.0.1:3000"
    assert ui_url(make_settings(home=tmp_path, ui_host="0.0.0.0", ui_port=80)) == "http://127.0.0.1:80"
    assert ui_url(make_settings(home=tmp_path, ui_host="::")) == "http://[::1]:3000"
    assert reachable("ui.internal") == "ui.internal"


def test_a_port_that_listens_but_does_not_speak_http_is_no_answer(busy_port: int):
    assert not answers("127.0.0.1", free_port())
