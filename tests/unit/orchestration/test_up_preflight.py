"""What `perennial up` refuses before it starts anything, and what exactly it starts."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.shared.error import PerennialError
from orchestration.cli.up import (
    api_command,
    code_command,
    daemon_command,
    free_port,
    reachable,
    require_ports,
    run_up,
    sandbox_command,
    ui_command,
    ui_url,
)
from orchestration.domain import Sandbox
from orchestration.supervisor import AlreadyRunning, only_one
from tests.settings import make_settings


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_run_up__ports_in_use__names_each_setting_before_anything_starts(tmp_path: Path, busy_port: int):
    settings = make_settings(home=tmp_path, ui_port=busy_port, api_port=busy_port, sandbox_port=busy_port)
    with pytest.raises(PerennialError) as caught:
        run_up(settings, before_start=lambda: pytest.fail("started"))
    assert caught.value.reason_code == "port_in_use"
    assert f"PERENNIAL_UI_PORT: 127.0.0.1:{busy_port}: the port is in use" in caught.value.message
    assert f"PERENNIAL_API_PORT: 127.0.0.1:{busy_port}: the port is in use" in caught.value.message
    assert f"PERENNIAL_SANDBOX_PORT: 127.0.0.1:{busy_port}: the port is in use" in caught.value.message
    assert not (tmp_path / "logs").exists()


def test_run_up__source_is_elsewhere__does_not_need_the_port_of_the_sandbox(tmp_path: Path, busy_port: int):
    settings = make_settings(
        home=tmp_path,
        domains=("market",),
        ui_port=busy_port,
        sandbox_port=busy_port,
        tushare_url="http://exchange.invalid:1",
    )
    with pytest.raises(PerennialError) as caught:
        run_up(settings)
    assert "PERENNIAL_SANDBOX_PORT" not in caught.value.message


def test_run_up__address_of_another_machine__is_refused(tmp_path: Path):
    with pytest.raises(PerennialError, match=r"192\.0\.2\.1") as caught:
        run_up(make_settings(home=tmp_path, ui_host="192.0.2.1", ui_port=free_port()))
    assert "PERENNIAL_UI_HOST" in caught.value.remedy


def test_run_up__api_for_everybody_without_a_token__is_refused(tmp_path: Path):
    settings = make_settings(
        home=tmp_path, ui_port=free_port(), sandbox_port=free_port(), api_port=free_port(), api_host="0.0.0.0"
    )
    with pytest.raises(PerennialError) as caught:
        run_up(settings, before_start=lambda: pytest.fail("started"))
    assert caught.value.reason_code == "no_api_token"


def test_require_ports__api_is_off__does_not_need_its_port(tmp_path: Path):
    require_ports(make_settings(home=tmp_path, ui_port=free_port(), api_port=0), [])


def test_run_up__another_one_runs__names_its_process(tmp_path: Path):
    with only_one(tmp_path / "up.lock"), pytest.raises(AlreadyRunning, match=str(os.getpid())):
        run_up(make_settings(home=tmp_path))


def test_commands__secrets_set__have_none_of_them(tmp_path: Path):
    settings = make_settings(
        home=tmp_path,
        env="production",
        database_url="postgresql+psycopg2://u:s3cret@h/d",
        market_start="2015-01-01",
        tushare_token="t0ken",
        api_token="t0ken-of-the-api",
    )
    workspace = tmp_path / "workspace.yaml"
    commands = [
        sandbox_command(Sandbox("http://127.0.0.1:1", 1, tmp_path / "port")),
        code_command(1, settings),
        ui_command(settings, workspace),
        daemon_command(settings, workspace),
        api_command(),
    ]
    words = [word for command in commands for word in command.argv]
    assert not [word for word in words if "s3cret" in word or "t0ken" in word]


def test_ui_url__any_host__leads_to_the_ui(tmp_path: Path):
    assert ui_url(make_settings(home=tmp_path)) == "http://127.0.0.1:3000"
    assert ui_url(make_settings(home=tmp_path, ui_host="0.0.0.0", ui_port=80)) == "http://127.0.0.1:80"
    assert ui_url(make_settings(home=tmp_path, ui_host="::")) == "http://[::1]:3000"
    assert reachable("ui.internal") == "ui.internal"
