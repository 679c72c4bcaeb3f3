"""A real Postgres for tests: found on the machine or in a wheel, started in a folder of its own.

Nothing is installed and nobody's server is touched: the server listens on a unix socket in a temporary
folder, keeps nothing durable, and ends with the session. Postgres refuses to run as root, so then it
runs as another user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEEDED = ("initdb", "postgres")
USERS = ("postgres", "nobody")
START_SECONDS = 60
ROOM = 1 << 30


class PostgresMissing(Exception):
    """No Postgres can be had here."""


@dataclass(frozen=True)
class Server:
    """A running server. `url` names a database of it, for SQLAlchemy."""

    socket_folder: Path
    port: int
    pid: int

    def url(self, database: str) -> str:
        return f"postgresql+psycopg2://perennial@/{database}?host={self.socket_folder}&port={self.port}"


def find_binaries() -> Path:
    """The folder of a Postgres: from PATH, from Debian's folders, or from the wheel `pgserver`."""
    for folder in _candidates():
        if all(os.access(folder / name, os.X_OK) for name in NEEDED):
            return folder.resolve()
    raise PostgresMissing(
        "no Postgres found: neither on PATH, nor in /usr/lib/postgresql, nor the wheel pgserver; "
        "`pip install pgserver` or install your system's postgresql package"
    )


def _candidates() -> Iterator[Path]:
    if initdb := shutil.which("initdb"):
        # A link in PATH may lead to a folder that has the other programs too.
        yield Path(initdb).resolve().parent
        yield Path(initdb).parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    wheel = importlib.util.find_spec("pgserver")  # found, not imported: its import starts things
    for folder in (wheel.submodule_search_locations or []) if wheel else []:
        yield Path(folder) / "pginstall" / "bin"


def _version(folder: Path) -> float:
    name = folder.parent.name
    return float(name) if name.replace(".", "", 1).isdigit() else 0.0


@contextmanager
def running_server() -> Iterator[Server]:
    # Not under pytest's folder: a socket's path may have some 100 characters, and the user must reach it.
    home = Path(tempfile.mkdtemp(prefix="pg", dir=in_memory() or "/tmp"))
    try:
        owner = _owner(home)
        with _reachable(find_binaries(), owner) as binaries:
            _initialise(binaries, home / "data", owner)
            with _started(binaries, home, owner) as server:
                yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _started(binaries: Path, home: Path, owner: str | None) -> Iterator[Server]:
    port = _free_port()
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(binaries / "postgres"),
                "-D",
                str(home / "data"),
                "-k",
                str(home),
                "-p",
                str(port),
                *_SETTINGS,
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=home,
            **_as_user(owner),
        )
        try:
            _await(home, port, process)
            yield Server(home, port, process.pid)
        finally:
            process.send_signal(signal.SIGINT)  # "fast": disconnects the clients
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def in_memory(*, programs: bool = False) -> str | None:
    """A folder in memory with plenty of room, if there is one: for what writes many small files that nobody
    keeps, and with `programs` may also be started from there."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < ROOM:
        return None
    return None if programs and os.statvfs(memory).f_flag & os.ST_NOEXEC else str(memory)


_CLUSTER = ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
_SETTINGS = [
    word
    for setting in (
        "listen_addresses=",
        "fsync=off",
        "full_page_writes=off",
        "synchronous_commit=off",
        "max_connections=100",
        "shared_buffers=64MB",
        "timezone=Asia/Shanghai",  # not UTC: what forgets its zone shows
    )
    for word in ("-c", setting)
]


def _owner(home: Path) -> str | None:
    """The user to run as, None for ourselves. The folder is given to that user."""
    if os.geteuid() != 0:
        return None
    for name in USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(home, user.pw_uid, user.pw_gid)
        home.chmod(0o755)
        return name
    raise PostgresMissing(f"Postgres refuses root, and there is none of the users {', '.join(USERS)}")


def _as_user(owner: str | None) -> dict[str, Any]:
    if owner is None:
        return {}
    user = pwd.getpwnam(owner)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def _reachable(binaries: Path, owner: str | None) -> Iterator[Path]:
    """The same binaries where the other user may run them: a wheel may lie in a closed home folder."""
    if owner is None or _runs(binaries, owner):
        yield binaries
        return
    # In /tmp, for shared memory often forbids to execute.
    with tempfile.TemporaryDirectory(prefix="pgbin", dir="/tmp") as folder:
        copy = Path(folder)
        copy.chmod(0o755)
        installation = binaries.parent
        shutil.copytree(installation, copy / "package" / installation.name, symlinks=True)
        libraries = installation.parent.parent / "pgserver.libs"  # what the wheel's binaries link to
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name, symlinks=True)
        yield copy / "package" / installation.name / "bin"


def _runs(binaries: Path, owner: str) -> bool:
    try:
        asked = subprocess.run(
            [str(binaries / "postgres"), "--version"], capture_output=True, cwd="/", **_as_user(owner)
        )
    except OSError:
        return False
    return asked.returncode == 0


def _initialise(binaries: Path, data: Path, owner: str | None) -> None:
    finished = subprocess.run(
        [str(binaries / "initdb"), "-D", str(data), "-U", "perennial", *_CLUSTER],
        capture_output=True,
        text=True,
        cwd="/",
        **_as_user(owner),
    )
    if finished.returncode:
        raise PostgresMissing(f"initdb failed: {finished.stderr.strip() or finished.stdout.strip()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(home: Path, port: int, process: subprocess.Popen[bytes]) -> None:
    import psycopg2

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg2.connect(host=str(home), port=port, user="perennial", dbname="postgres").close()
        except psycopg2.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                said = (home / "log").read_text(errors="replace")
                raise PostgresMissing(f"Postgres did not start: {said}") from error
            time.sleep(0.05)
        else:
            return
