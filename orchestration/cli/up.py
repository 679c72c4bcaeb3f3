"""`perennial up`: the whole product in the foreground, until Ctrl-C: UI, daemon, HTTP API, sandbox.

UI and daemon share one code server: the code is imported once, and both see the same.
"""

from __future__ import annotations

import errno
import re
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from domain.shared.error import PerennialError
from orchestration.api.serve import require_token
from orchestration.domain import Sandbox
from orchestration.environments import child_environment
from orchestration.instance import LOCATION, MODULE, dagster_home, write_yaml
from orchestration.platform import listens, reachable
from orchestration.sandboxes import started_sandboxes
from orchestration.settings import PROJECT_ROOT, Settings
from orchestration.supervisor import Command, Supervisor, end_left_over, only_one, say

_LOOPBACK = "127.0.0.1"
_ROUTINE = re.compile(
    r" - INFO - (Checking for new runs for sensor: |(Sensor|Schedule) \S+ skipped: |Priority sorting and "
    r"checking tag |Creating new run for |Launching run for |Collected \d+ runs for monitoring|Checking run )"
)
"""Lines of the daemon that repeat every few seconds, or announce what the next line reports."""
_CALLS = re.compile(r" INFO perennial\.api: ")
"""Lines of the HTTP API, one for each call."""


def run_up(
    settings: Settings,
    *,
    before_start: Callable[[], None] = lambda: None,
    after_stop: Callable[[], None] = lambda: None,
) -> int:
    """Run everything until a signal stops it (0, of Ctrl-C 130) or until a part ends by itself (1).

    `before_start` and `after_stop` are called while nothing else of this home runs.
    """
    sandboxes = started_sandboxes(settings)
    children = settings.home / "up.group"
    with only_one(settings.home / "up.lock"):
        if end_left_over(children):
            say("ended the processes of an earlier perennial up that was killed")
        require_ports(settings, [one.port for one in sandboxes if one.port])
        require_token(settings)
        dagster_home(settings)
        before_start()
        environment = child_environment(settings) | {
            # Dagster's default of 5 events a tick falls behind as soon as runs come in dozens.
            "DAGSTER_RUN_STATUS_SENSOR_PROCESS_LIMIT": "25",
        }
        supervisor = Supervisor(children, environment, PROJECT_ROOT, settings.home / "logs")
        dead = _supervise(supervisor, settings, sandboxes)
        after_stop()
    if dead:
        return 1
    say("stopped: what was committed is kept; `perennial up` goes on with the rest")
    return 128 + signal.SIGINT if signal.SIGINT in supervisor.signals else 0


def _supervise(supervisor: Supervisor, settings: Settings, sandboxes: Sequence[Sandbox]) -> bool:
    """Run until a signal comes, or a part ends by itself; return whether one did."""
    port = free_port()
    workspace = settings.dagster_home / "workspace.yaml"
    server = {"host": _LOOPBACK, "port": port, "location_name": LOCATION}
    write_yaml(workspace, {"load_from": [{"grpc_server": server}]})
    with supervisor.running():
        for sandbox in sandboxes:
            # Other commands of this home use this sandbox, with the faults a person set on it.
            supervisor.start(sandbox_command(sandbox))
        supervisor.start(code_command(port, settings))
        # Without the code, the UI shows an error and the daemon waits for its next tick.
        if supervisor.wait_until(lambda: listens(_LOOPBACK, port)):
            supervisor.start(ui_command(settings, workspace))
            supervisor.start(daemon_command(settings, workspace))
            served = [(settings.ui_host, settings.ui_port)]
            if settings.api_port:
                supervisor.start(api_command())
                served.append((settings.api_host, settings.api_port))
            if supervisor.wait_until(lambda: all(listens(host, port) for host, port in served)):
                api = f", HTTP API: {url(*served[1])}" if settings.api_port else ""
                say(f"Perennial is up: {ui_url(settings)}{api} (Ctrl-C stops it)")
                supervisor.wait_until(lambda: False)
        if dead := supervisor.dead():
            say(
                f"{dead.name} ended by itself with exit code {dead.exit_code()}, so everything is stopped; "
                f"its log: {dead.log}"
            )
    return dead is not None


def sandbox_command(sandbox: Sandbox) -> Command:
    argv = [sys.executable, "-m", "sandbox", "serve", "--host", _LOOPBACK, "--port", str(sandbox.port)]
    if sandbox.port_file:
        sandbox.port_file.parent.mkdir(parents=True, exist_ok=True)
        argv += ["--port-file", str(sandbox.port_file)]
    return Command("sandbox", argv)


def code_command(port: int, settings: Settings) -> Command:
    argv = [sys.executable, "-m", "dagster", "code-server", "start", "-m", MODULE]
    argv += ["--host", _LOOPBACK, "--port", str(port), "--location-name", LOCATION]
    # Run workers are started with the very interpreter that serves the code.
    return Command("code", [*argv, "--use-python-environment-entry-point", *_logging(settings)])


def ui_command(settings: Settings, workspace: Path) -> Command:
    argv = [sys.executable, "-m", "dagster_webserver", "--workspace", str(workspace)]
    argv += ["--host", settings.ui_host, "--port", str(settings.ui_port)]
    return Command("ui", [*argv, "--dagster-log-level", settings.log_level.lower()])


def daemon_command(settings: Settings, workspace: Path) -> Command:
    argv = [sys.executable, "-m", "dagster._daemon", "run", "--workspace", str(workspace)]
    noise = None if settings.log_level == "DEBUG" else _ROUTINE
    return Command("daemon", [*argv, *_logging(settings)], noise)


def api_command() -> Command:
    return Command("api", [sys.executable, "-m", "orchestration.cli", "api"], routine=_CALLS)


def _logging(settings: Settings) -> list[str]:
    return ["--log-level", settings.log_level.lower()]


def require_ports(settings: Settings, sandbox_ports: Sequence[int]) -> None:
    """Raise if an address cannot be listened on, with a line for each."""
    wanted = [("PERENNIAL_UI_PORT", settings.ui_host, settings.ui_port)]
    if settings.api_port:
        wanted.append(("PERENNIAL_API_PORT", settings.api_host, settings.api_port))
    wanted += [("PERENNIAL_SANDBOX_PORT", _LOOPBACK, port) for port in sandbox_ports]
    problems = []
    for variable, host, port in wanted:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            socket.create_server((host, port), family=family).close()
        except OSError as error:
            why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or error
            problems.append(f"  {variable}: {host}:{port}: {why}")
    if problems:
        raise PerennialError(
            "cannot listen:\n" + "\n".join(problems),
            reason_code="port_in_use",
            remedy="stop what uses the port, or set the variable to another one; see PERENNIAL_UI_HOST too",
        )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def ui_url(settings: Settings) -> str:
    return url(settings.ui_host, settings.ui_port)


def url(host: str, port: int) -> str:
    host = reachable(host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
