"""What `status` and `doctor` look at beside the domains: daemon, runs, folders, port, clock."""

from __future__ import annotations

import errno
import fcntl
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from domain.shared.clock import machine_clock
from domain.shared.error import InfrastructureError, PerennialError
from domain.shared.health import Finding
from domain.shared.platform_health import LEFT, SILENT, FullFolder, Platform, UnfinishedRun
from orchestration.dagster_storage import read_dagster
from orchestration.presence import command_of, commands_folder, dead_commands
from orchestration.registry import enabled
from orchestration.services import open_ledger
from orchestration.settings import Settings

SPACE = 1 << 20
"""Bytes that a folder must take. With less not even the databases of an empty home fit."""
SCARCE = 1 << 30
SCARCE_SHARE = 0.05
"""Less free space than either of these is soon none."""


def observe_platform(settings: Settings, found: Sequence[Finding]) -> Platform:
    """Return what is seen of the platform; `found` are the findings of the domains."""
    now = machine_clock()
    state = read_dagster(settings)
    up = is_up(settings)
    runs_now = up or (state.heartbeat is not None and now - state.heartbeat < SILENT)
    silent = [run for run in state.runs if now - run.last_sign > LEFT]
    codes = {code for domain in enabled(settings) for code in domain.late_codes()}
    doubts = {finding.reason_code for finding in found}
    recorded = [moment for moment in (state.heartbeat, state.newest_run) if moment]
    return Platform(
        daemon_runs=runs_now,
        heartbeat=state.heartbeat,
        served=settings.env == "production",
        runs=tuple(_with_work(settings, silent)) if silent else (),
        folders=tuple(full_folders(settings)),
        port_taken=""
        if runs_now or not listens(settings.ui_host, settings.ui_port)
        else ui_address(settings),
        newest_record=max(recorded, default=None),
        reference=state.now or (reference_time(settings) if codes.intersection(doubts) else None),
        late_codes=codes,
        killed_runs=_killed_runs(settings, found),
    )


def _killed_runs(settings: Settings, found: Sequence[Finding]) -> frozenset[str]:
    """Return the runs among those of the findings whose commands were killed."""
    runs = {finding.run_id for finding in found if finding.run_id}
    dead = dead_commands(commands_folder(settings.home)) if runs else ()
    return frozenset(run for run in runs if command_of(run) in dead)


def _with_work(settings: Settings, runs: Sequence[UnfinishedRun]) -> Iterator[UnfinishedRun]:
    """Yield the runs with the work items that they have leased."""
    rows = open_ledger(settings).running()
    now = machine_clock()
    for run in runs:
        held = [
            row.id for row in rows if row.run_id == run.run_id and row.lease_until and row.lease_until > now
        ]
        yield replace(run, holds=frozenset(held))


def reference_time(settings: Settings) -> datetime | None:
    """Return the time by the clock of a source, if one says it."""
    return next(filter(None, (domain.reference_time(settings) for domain in enabled(settings))), None)


def is_up(settings: Settings) -> bool:
    """Whether `perennial up` of this home runs."""
    with suppress(FileNotFoundError), (settings.home / "up.lock").open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def full_folders(settings: Settings) -> Iterator[FullFolder]:
    """Yield the folders of these settings that cannot be written, or soon cannot be."""
    for setting, folder in folders(settings).items():
        if not folder.is_dir():
            continue
        try:
            require_space(setting, folder)
        except PerennialError as error:
            yield FullFolder(setting, error.reason_code, error.message)
            return  # the others are below it, or on the same disk
        usage = shutil.disk_usage(folder)
        if usage.free < min(SCARCE, usage.total * SCARCE_SHARE):
            free = f"{usage.free / SCARCE:.1f} of {usage.total / SCARCE:.1f} GB"
            yield FullFolder(setting, "disk_nearly_full", f"{folder} has {free} free")
            return


def folders(settings: Settings) -> dict[str, Path]:
    """Return the folders that this program writes, by setting."""
    found = {"PERENNIAL_HOME": settings.home}
    if settings.warehouse.startswith("file://"):
        found["PERENNIAL_WAREHOUSE"] = Path(settings.warehouse.removeprefix("file://"))
    return found


def require_space(setting: str, folder: Path) -> None:
    """Raise if this user cannot write a file there."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(SPACE))
            file.flush()
    except OSError as error:
        code = "disk_full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "read_only"
        raise InfrastructureError(
            f"{setting} cannot be written: {folder}: {error.strerror}",
            reason_code=code,
            remedy=f"free disk space and make {folder} writable, or set {setting} to another folder",
        ) from error


def ui_address(settings: Settings) -> str:
    return f"{settings.ui_host}:{settings.ui_port} (PERENNIAL_UI_PORT)"


def api_address(settings: Settings) -> str:
    return f"{settings.api_host}:{settings.api_port} (PERENNIAL_API_PORT)"


def listens(host: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((reachable(host), port), timeout=1):
        return True
    return False


def serves_api(host: str, port: int) -> bool:
    """Whether an HTTP API of a Perennial answers there."""
    with suppress(OSError, HTTPException):
        connection = HTTPConnection(reachable(host), port, timeout=1)
        with closing(connection):
            connection.request("GET", "/healthz")
            return connection.getresponse().read(100) == b'{"status":"alive"}'
    return False


def reachable(host: str) -> str:
    """Return an address that leads to a server which listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound here
