"""Whatever is configured wrongly is one clear message: what, where, what to do. No stack trace, no secret.

Most cases run the real command in this process, as its console script does; those in which a process of
its own makes a difference (mounts, time zones, the interpreter's own way to end) start one.
"""

from __future__ import annotations

import contextlib
import http.server
import io
import json
import os
import shlex
import shutil
import socket
import socketserver
import sqlite3
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestration.cli.main import main
from orchestration.cli.up import free_port
from orchestration.domains.market import open_market
from orchestration.environments import load_settings
from resources.database.schema import VERSION_TABLE
from sandbox.server import SandboxServer

ROOT = Path(__file__).parents[3]
TOKEN = "Pl4nted-token-of-a-real-account"
PASSWORD = "hunter2"
NOW = "2024-09-30T18:31"
RUBBISH = b"this is no database" * 500
READERS = ("status --json", "check market", "plan market", "doctor --json")
WRITES = ("migrate", "market heal", "market daily")
TELLS_ITSELF = ("status", "check", "doctor", "up")
"""Commands whose answer is what is wrong; of the others the message on stderr is all there is."""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class Surroundings:
    """A good configuration, and addresses that are good for nothing."""

    home: Path
    environ: dict[str, str]
    addresses: Mapping[str, object]

    def with_(self, changes: Mapping[str, str]) -> dict[str, str]:
        changed = {name: value.format(home=self.home, **self.addresses) for name, value in changes.items()}
        return {**self.environ, **changed}


# The outside


class _Page(http.server.BaseHTTPRequestHandler):
    """A web server that is no Tushare: it answers everything with a page."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        page = b"<html><body>Welcome!</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


class _Refusing(socketserver.BaseRequestHandler):
    """A Postgres that knows no such password: as much of its protocol as it takes to say so."""

    def handle(self) -> None:
        self._message()  # may we talk TLS?
        self.request.sendall(b"N")
        self._message()
        fields = (b"SFATAL", b"VFATAL", b"C28P01", b'Mpassword authentication failed for user "perennial"')
        body = b"".join(f + b"\0" for f in fields) + b"\0"
        self.request.sendall(b"E" + struct.pack("!I", len(body) + 4) + body)

    def _message(self) -> None:
        (length,) = struct.unpack("!I", self.request.recv(4, socket.MSG_WAITALL))
        self.request.recv(length - 4, socket.MSG_WAITALL)


@contextlib.contextmanager
def serving(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, object]]:
    with (
        SandboxServer() as sandbox,
        serving(_Page) as page,
        serving(_Refusing) as postgres,
        socket.create_server(("127.0.0.1", 0)) as busy,
        socket.socket() as closed,
    ):
        closed.bind(("127.0.0.1", 0))  # taken, but nobody listens
        yield {
            "sandbox": sandbox.url,
            "sandbox_port": sandbox.port,
            "page": f"http://127.0.0.1:{page}",
            "postgres": postgres,
            "busy": busy.getsockname()[1],
            "free": free_port(),
            "closed": closed.getsockname()[1],
        }


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory, addresses: Mapping[str, object]) -> Path:
    """A home that belongs to the sandbox: its ledger is there, nothing is fetched yet."""
    home = tmp_path_factory.mktemp("migrated") / "home"
    open_market(load_settings(good(home, addresses)), write=True).ledger.close()
    with contextlib.closing(sqlite3.connect(home / "ledger.db")) as connection:
        # Else the copies' log could bring back what a test takes away.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return home


@pytest.fixture
def here(tmp_path: Path, migrated: Path, addresses: Mapping[str, object]) -> Surroundings:
    home = tmp_path / "home"
    shutil.copytree(migrated, home, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    return Surroundings(home, good(home, addresses), addresses)


def good(home: Path, addresses: Mapping[str, object]) -> dict[str, str]:
    return {
        "PERENNIAL_HOME": str(home),
        "PERENNIAL_SOURCE": "sandbox",
        "PERENNIAL_NOW": NOW,
        "TUSHARE_URL": str(addresses["sandbox"]),
        "TUSHARE_RETRY_DELAYS": "none",
    }


# The command


def perennial(environ: Mapping[str, str], command: str) -> Said:
    """In this process. What would be a stack trace is one here, too."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith(("PERENNIAL_", "TUSHARE_", "DAGSTER_"))]:
            patch.delenv(name)
        for name, value in environ.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["perennial", *shlex.split(command)])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
                code: object = 0
            except SystemExit as end:
                code = end.code or 0
            except Exception:  # noqa: BLE001 - whatever it is, the interpreter would show it
                traceback.print_exc()
                code = 1
    assert isinstance(code, int)
    return Said(code, out.getvalue(), err.getvalue())


def child(environ: Mapping[str, str], command: str, *, before: str = "", python: str = "") -> Said:
    """In a process of its own; `before` is what a shell does first, in a mount namespace of its own."""
    code = f"{python}\nfrom orchestration.cli.main import main\nmain()"
    words = [sys.executable, "-c", code, *shlex.split(command)]
    if before:
        words = ["unshare", "-rm", "sh", "-c", f"{before} && exec {shlex.join(words)}"]
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("PERENNIAL_", "TUSHARE_", "DAGSTER_"))}
    done = subprocess.run(
        words, env={**kept, **environ}, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    return Said(done.returncode, done.stdout, done.stderr)


def check(said: Said, command: str, code: int, *says: str) -> None:
    """The promises every case keeps."""
    assert "Traceback" not in said.all, said.all
    assert said.code == code, said.all
    assert [wanted for wanted in says if wanted not in readable(said)] == [], said.all
    for secret in (TOKEN, PASSWORD):
        assert secret not in said.all
    if command.split(maxsplit=1)[0] in TELLS_ITSELF and not said.err:
        assert said.out.strip()
        return
    assert said.out == "", "there is no answer, so nothing may look like one"
    # One message and what to do: settings, told all at once, are its indented lines.
    starts = [line.split(":")[0] for line in said.err.splitlines() if not line.startswith("  ")]
    assert starts == ["error", "remedy"], said.err


def readable(said: Said) -> str:
    """What a JSON document says, as a person reads it."""
    with contextlib.suppress(ValueError):
        return json.dumps(json.loads(said.out), ensure_ascii=False).replace('\\"', '"')
    return said.all


# Settings: found before anything is opened

REAL = {"PERENNIAL_SOURCE": "tushare", "TUSHARE_TOKEN": TOKEN, "PERENNIAL_NOW": ""}
IN_PRODUCTION = {"PERENNIAL_ENV": "production"}


def postgres(place: str) -> str:
    return f"postgresql://perennial:{PASSWORD}@{place}"


SETTINGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "no token": (
        {"PERENNIAL_SOURCE": "tushare", "PERENNIAL_NOW": "", "TUSHARE_TOKEN": "  "},
        ("TUSHARE_TOKEN: the source tushare needs the token", "Set it, or PERENNIAL_SOURCE=sandbox"),
    ),
    "database: a password that ends the host": (
        {"PERENNIAL_DATABASE_URL": f"postgresql://u:{PASSWORD}/x@h/d"},
        ("PERENNIAL_DATABASE_URL: postgresql://*** is not", "write / as %2F"),
    ),
    "many at once": (
        {"PERENNIAL_ENV": "x", "PERENNIAL_THREADS": "y", "TUSHARE_TOKENS": TOKEN},
        ("PERENNIAL_ENV: x", "PERENNIAL_THREADS: y", "did you mean TUSHARE_TOKEN?"),
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_command__wrong_setting__is_refused_by_every_command_alike(here: Surroundings, name: str) -> None:
    changes, says = SETTINGS[name]
    messages = set()
    for command in ("status", "settings --json", "market daily", "up"):
        said = perennial(here.with_(changes), command)
        check(said, command, 2, *says, "remedy: correct these environment variables; docs/settings.md")
        messages.add(said.err)
    assert len(messages) == 1


# State: what lies in the home folder is not what it should be


def sql(statement: str) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        with contextlib.closing(sqlite3.connect(home / "ledger.db")) as connection:
            connection.execute(statement)
            connection.commit()

    return change


def content(path: str, data: bytes) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_bytes(data)

    return write


def half(path: str) -> Callable[[Path], None]:
    def cut(home: Path) -> None:
        whole = (home / path).read_bytes()
        (home / path).write_bytes(whole[: len(whole) // 2])

    return cut


def file_instead(home: Path) -> None:
    shutil.rmtree(home)
    home.write_text("a file")


def made_elsewhere(home: Path) -> None:
    """A home that stood at /old when its first table was made."""
    (home / "lake").mkdir()
    with contextlib.closing(sqlite3.connect(home / "lake" / "catalog.db")) as connection:
        connection.execute(
            "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
        )
        place = "file:///old/lake/warehouse/market/normalized_daily/metadata/1.metadata.json"
        row = ("perennial", "market", "normalized_daily", place)
        connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?)", row)
        connection.commit()


def untouched(_: Path) -> None:
    pass


@dataclass(frozen=True)
class State:
    """`looks` and `writes`: which commands notice, and their exit codes where it is not 1."""

    make: Callable[[Path], None]
    says: tuple[str, ...]
    commands: tuple[str, ...]
    code: int = 1
    changes: dict[str, str] = field(default_factory=dict)


def exit_code(state: State, command: str) -> int:
    """A pass that tells of trouble ends with 1, whatever the trouble."""
    return 1 if command.split(maxsplit=1)[0] in TELLS_ITSELF else state.code


LEDGER = "the ledger at sqlite:///"
HALF = ("is half-migrated",)
STATES = {
    "home: a file": State(
        file_instead,
        ("cannot be written", "set PERENNIAL_HOME to another folder"),
        ("doctor --json", *WRITES, "pools show", "demo", "up"),
    ),
    "warehouse: a file": State(
        content("tables", b""),
        ("PERENNIAL_WAREHOUSE cannot be written", "set PERENNIAL_WAREHOUSE to another folder"),
        ("doctor --json",),
        changes={"PERENNIAL_WAREHOUSE": "{home}/tables"},
    ),
    "ledger: rubbish": State(
        content("ledger.db", RUBBISH), (LEDGER, "file is not a database"), (*READERS, *WRITES, "work list")
    ),
    "ledger: half of it": State(half("ledger.db"), (LEDGER, "malformed"), ("status --json", "market heal")),
    "ledger: newer than the program": State(
        sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"),
        (LEDGER, "has schema 9999, newer than this program's"),
        ("status --json", "market heal", "work retry 1"),
        code=2,
    ),
    "ledger: tables without a revision": State(
        sql(f"DROP TABLE {VERSION_TABLE}"), (*HALF, "but no version", "restore the database"), WRITES, code=2
    ),
    "ledger: a table is missing": State(
        sql("DROP TABLE work"),
        (*HALF, "work"),
        (*READERS, "market heal", "work list"),
        code=2,
    ),
    "catalogue: rubbish": State(
        content("lake/catalog.db", RUBBISH),
        ("the lake's catalog", "catalog.db cannot be read: file is not a database"),
        (*READERS, "market heal", "sql 'SELECT 1'"),
    ),
    "warehouse: made elsewhere": State(
        made_elsewhere,
        (
            "the warehouse was made at /old/lake/warehouse and is now at ",
            "move it back, or make /old/lake/warehouse a link to it",
            "set PERENNIAL_HOME back, or PERENNIAL_WAREHOUSE=/old/lake/warehouse",
        ),
        (*READERS, "market heal", "sql 'SELECT 1'"),
    ),
    "dagster: rubbish": State(
        content("dagster/history/runs.db", RUBBISH),
        ("Dagster's storage below PERENNIAL_HOME failed: file is not a database",),
        ("doctor --json", "pools show", "market heal"),
    ),
    "another source": State(
        untouched,
        ("belongs to source 'sandbox', not 'tushare'",),
        (*READERS, "market heal", "market daily"),
        code=2,
        changes=REAL,
    ),
}
ONE_LINE = ("check",)
"""Says what is wrong and no more: its line is read by cron."""


@pytest.mark.parametrize(
    ("name", "command"), [(name, command) for name, state in STATES.items() for command in state.commands]
)
def test_command__home_in_disorder__is_one_message(here: Surroundings, name: str, command: str) -> None:
    state = STATES[name]
    state.make(here.home)
    reported = command.split(maxsplit=1)[0]
    says = [
        s for s in state.says if reported not in ONE_LINE or not s.startswith(("restore", "set ", "move "))
    ]
    said = perennial(here.with_(state.changes), command)
    check(said, command, exit_code(state, command), *says)
    if command == "status --json":
        assert all(finding["action"] for finding in json.loads(said.out)["findings"])


def test_market_daily__warehouse_of_another_catalogue__is_refused_and_deletes_nothing(
    here: Surroundings,
) -> None:
    anothers = "lake/warehouse/market/normalized_trade_cal/data/year=2024/1.parquet"
    content(anothers, b"another's")(here.home)
    done = perennial(here.environ, "market daily --json")
    assert done.code == 1
    assert "Traceback" not in done.all
    assert "holds data files that this catalogue does not know" in done.err
    assert (here.home / anothers).read_bytes() == b"another's"
    reported = json.loads(perennial(here.environ, "status --json").out)
    assert reported["needs_a_person"]
    assert "foreign_warehouse" in {finding["reason_code"] for finding in reported["findings"]}


def test_plan__warehouse_begins_this_week__has_no_older_day(here: Surroundings) -> None:
    """Days before the first partition would be refused by Dagster, one run after the other."""
    environ = {**here.environ, "PERENNIAL_MARKET_START": "2024-09-30"}
    assert perennial(environ, "market daily").code == 0
    shown = perennial(environ, "plan market --json")
    days = {v["partition"] for v in json.loads(shown.out)["verdicts"]}
    assert days == {"2024", "ALL", "2024-09-30"}


# The source: it answers nothing, or not as Tushare does

SOURCES = {
    "a wrong token": ({"TUSHARE_TOKEN": TOKEN}, ("Tushare refused with code 40101", "Set TUSHARE_TOKEN")),
    "a closed port": (
        {"TUSHARE_URL": "http://127.0.0.1:{closed}"},
        ("refused", "see that TUSHARE_URL is right"),
    ),
    "a web page": ({"TUSHARE_URL": "{page}"}, ("a web page instead of JSON", "TUSHARE_URL")),
    "no Tushare": ({"TUSHARE_URL": "{sandbox}/_sandbox/health"}, ("HTTP 404", "Set TUSHARE_URL")),
    "an address with a password": (
        {"TUSHARE_URL": "http://me:" + PASSWORD + "@127.0.0.1:{closed}"},
        ("http://127.0.0.1:", "TUSHARE_URL"),
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_doctor__source_does_not_answer__says_what_is_wrong(here: Surroundings, name: str) -> None:
    changes, says = SOURCES[name]
    perennial(here.environ, "pools apply")
    said = perennial(here.with_(changes), "doctor --json")
    check(said, "doctor", 1, *says)
    assert [part["part"] for part in json.loads(said.out) if not part["ok"]] == ["source"]


@pytest.mark.parametrize("name", ["a wrong token", "a web page"])
def test_market_daily__no_source__fails_and_says_what_to_do(here: Surroundings, name: str) -> None:
    changes, says = SOURCES[name]
    environ = here.with_(changes)
    done = perennial(environ, "market daily --json")
    assert done.code == 1
    assert "Traceback" not in done.all
    assert json.loads(done.out)["ok"] is False
    assert says[0] in done.err
    assert any(line.startswith("failed ") for line in done.err.splitlines())
    shown = perennial(environ, "status --json")
    check(shown, "status", 1, says[0], says[1].split()[-1])
    assert TOKEN not in done.all


def test_settings__address_with_a_password__is_shown_without_it(here: Surroundings) -> None:
    environ = here.with_({"TUSHARE_URL": f"http://me:{PASSWORD}@127.0.0.1:9"})
    for command in ("settings", "settings --json"):
        said = perennial(environ, command)
        assert said.code == 0
        assert PASSWORD not in said.all
        assert "http://me:***@127.0.0.1:9" in said.out


# Databases of production

UNREACHABLE = {
    "nobody listens": ("127.0.0.1:{closed}/perennial", ("refused", "PERENNIAL_DATABASE_URL")),
    "a wrong password": (
        "127.0.0.1:{postgres}/perennial",
        ("password authentication failed", "PERENNIAL_DATABASE_URL"),
    ),
}


@pytest.mark.parametrize("name", UNREACHABLE)
@pytest.mark.parametrize("command", ["status --json", "plan market", "market heal", "up"])
def test_command__database_unreachable__is_one_message(here: Surroundings, name: str, command: str) -> None:
    place, says = UNREACHABLE[name]
    changes = {**IN_PRODUCTION, "PERENNIAL_DATABASE_URL": postgres(place), "PERENNIAL_UI_PORT": "{free}"}
    said = perennial(here.with_(changes), command)
    check(said, command, 1, *says)


def test_command__catalogue_unreachable__is_one_message(here: Surroundings) -> None:
    environ = here.with_({"PERENNIAL_CATALOG_URL": postgres("127.0.0.1:{closed}/catalog")})
    for command in ("sql 'SELECT 1'", "plan market", "market heal"):
        said = perennial(environ, command)
        check(said, command, 1, "the lake's catalog cannot be reached", "PERENNIAL_CATALOG_URL")


# In processes of their own


@pytest.mark.parametrize("name", ["no token", "database: a password that ends the host"])
def test_command__process_of_its_own__says_the_same(here: Surroundings, name: str) -> None:
    changes, _ = SETTINGS[name]
    environ = here.with_(changes)
    assert child(environ, "status") == perennial(environ, "status")


def test_plan__image_without_time_zones__uses_the_package(here: Surroundings) -> None:
    """A slim image has none of its own."""
    said = child({**here.environ, "PYTHONTZPATH": ""}, "plan market --json")
    assert said.code == 0, said.err


@pytest.fixture
def own_mounts() -> None:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if shutil.which("unshare") and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        return
    reason = "a disk of its own was not tried: it needs unshare and the right to mount"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def on_a_disk(here: Surroundings, options: str, *, then: str = "true") -> str:
    """The shell's words for: the home folder on a file system of its own."""
    kept = here.home.parent / "kept"
    shutil.copytree(here.home, kept)
    return f"mount -t tmpfs -o {options} tmpfs {here.home} && cp -a {kept}/. {here.home} && {then}"


@pytest.mark.usefixtures("own_mounts")
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("market daily", "refused: unable to open database file"),
        ("doctor --json", "PERENNIAL_HOME cannot be written"),
    ],
)
def test_command__disk_is_read_only__ends_with_one_error(here: Surroundings, command: str, says: str) -> None:
    before = on_a_disk(here, "size=8m", then=f"mount -o remount,ro {here.home}")
    check(child(here.environ, command, before=before), command, 1, says)


@pytest.mark.usefixtures("own_mounts")
@pytest.mark.parametrize("command", ["market daily", "doctor --json"])
def test_command__disk_is_full__ends_with_one_error(here: Surroundings, command: str) -> None:
    said = child(here.environ, command, before=on_a_disk(here, "size=900k"))
    check(said, command, 1, "free disk space")


@pytest.mark.usefixtures("own_mounts")
def test_daily__disk_fills_up_during_the_work__ends_with_one_error(here: Surroundings) -> None:
    said = child(here.environ, "market daily", before=on_a_disk(here, "size=3m"))
    assert said.code == 1, said.all
    assert "Traceback" not in said.err, said.err
    assert "error: " in said.err
    assert "remedy: free disk space below PERENNIAL_HOME" in said.err
