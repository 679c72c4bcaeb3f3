"""Any wrong configuration is one message: what, where, what to do. No stack trace, no secret."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestration.domains.market import open_market
from orchestration.environments import load_settings
from orchestration.settings import PROJECT_ROOT
from resources.database.schema import VERSION_TABLE
from sandbox.server import SandboxServer
from tests.command import Said, said

TOKEN = "Pl4nted-token-of-a-real-account"
PASSWORD = "hunter2"
RUBBISH = b"this is no database" * 500
REPORTING = ("status", "check", "doctor", "up")
"""Commands whose answer is what is wrong; of the others the message on stderr is all there is."""
OURS = ("PERENNIAL_", "TUSHARE_", "DAGSTER_")


@dataclass(frozen=True)
class Surroundings:
    """A good configuration; `closed` is a port on which nobody listens."""

    home: Path
    environ: Mapping[str, str]
    closed: int

    def run(self, command: str, **changes: str) -> Said:
        """Run a command in this process; an error that it does not catch is raised."""
        changed = {name: value.format(home=self.home, closed=self.closed) for name, value in changes.items()}
        with pytest.MonkeyPatch.context() as patch:
            for name in [n for n in os.environ if n.startswith(OURS)]:
                patch.delenv(name)
            for name, value in {**self.environ, **changed}.items():
                patch.setenv(name, value)
            return said(*shlex.split(command))


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that belongs to the sandbox: its ledger is there, nothing is fetched yet."""
    home = tmp_path_factory.mktemp("migrated") / "home"
    open_market(load_settings({"PERENNIAL_HOME": str(home)}), write=True).ledger.close()
    with contextlib.closing(sqlite3.connect(home / "ledger.db")) as connection:
        # Else the copies' log could bring back what a test takes away.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return home


@pytest.fixture(scope="module")
def sandbox() -> Iterator[str]:
    with SandboxServer() as server:
        yield server.url


@pytest.fixture
def here(tmp_path: Path, migrated: Path, sandbox: str) -> Iterator[Surroundings]:
    home = tmp_path / "home"
    shutil.copytree(migrated, home, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    environ = {
        "PERENNIAL_HOME": str(home),
        "PERENNIAL_SOURCE": "sandbox",
        "PERENNIAL_NOW": "2024-09-30T18:31",
        "TUSHARE_URL": sandbox,
        "TUSHARE_RETRY_DELAYS": "none",
    }
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield Surroundings(home, environ, closed.getsockname()[1])


def check(done: Said, command: str, code: int, *parts: str) -> None:
    """The promises that every case keeps."""
    printed = done.out + done.err
    assert done.code == code, printed
    readable = done.out.replace('\\"', '"') + done.err
    assert [part for part in parts if part not in readable] == [], printed
    assert not any(secret in printed for secret in (TOKEN, PASSWORD))
    if command.split(maxsplit=1)[0] in REPORTING and not done.err:
        assert done.out.strip()
        return
    assert done.out == "", "there is no answer, so nothing may look like one"
    # One message and what to do: settings, reported all at once, are its indented lines.
    starts = [line.split(":")[0] for line in done.err.splitlines() if not line.startswith("  ")]
    assert starts == ["error", "remedy"], done.err


# Settings: found before anything is opened

WRONG = {
    "PERENNIAL_ENV": "x",
    "PERENNIAL_DATABASE_URL": f"postgresql://u:{PASSWORD}/x@h/d",
    "TUSHARE_TOKENS": TOKEN,
}
MESSAGES = (
    "PERENNIAL_ENV: x",
    "PERENNIAL_DATABASE_URL: postgresql://***",
    "write / as %2F",
    "did you mean TUSHARE_TOKEN?",
    "remedy: correct these environment variables; docs/settings.md",
)


def test_command__wrong_settings__are_refused_by_every_command_alike(here: Surroundings) -> None:
    messages = set()
    for command in ("status", "settings --json", "market daily", "up"):
        done = here.run(command, **WRONG)
        check(done, command, 2, *MESSAGES)
        messages.add(done.err)
    program = [sys.executable, "-m", "orchestration.cli", "status"]
    foreign = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environ = {**foreign, **here.environ, **WRONG}
    own = subprocess.run(program, env=environ, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=120)
    assert (own.returncode, {own.stderr}) == (2, messages)


def test_settings__address_with_a_password__is_shown_without_it(here: Surroundings) -> None:
    for command in ("settings", "settings --json"):
        done = here.run(command, TUSHARE_URL=f"http://me:{PASSWORD}@127.0.0.1:9")
        assert done.code == 0
        assert PASSWORD not in done.out
        assert "http://127.0.0.1:9" in done.out


# State: what is in the home folder is not what it should be


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
        location = "file:///old/lake/warehouse/market/normalized_daily/metadata/1.metadata.json"
        row = ("perennial", "market", "normalized_daily", location)
        connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?)", row)
        connection.commit()


@dataclass(frozen=True)
class State:
    """`commands` notice it; `code` is the exit code of those that do not report it as their answer."""

    make: Callable[[Path], object]
    parts: tuple[str, ...]
    commands: tuple[str, ...]
    code: int = 1
    changes: dict[str, str] = field(default_factory=dict)


LEDGER = "the ledger at sqlite:///"
STATES = {
    "home: a file": State(file_instead, ("cannot be written",), ("doctor --json", "market daily", "up")),
    "warehouse: a file": State(
        content("tables", b""),
        ("PERENNIAL_WAREHOUSE cannot be written", "set PERENNIAL_WAREHOUSE to another folder"),
        ("doctor --json",),
        changes={"PERENNIAL_WAREHOUSE": "{home}/tables"},
    ),
    "ledger: rubbish": State(
        content("ledger.db", RUBBISH),
        (LEDGER, "file is not a database"),
        ("status --json", "check market", "market heal", "work list"),
    ),
    "ledger: newer than the program": State(
        sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999' WHERE version_num LIKE '0%'"),
        (LEDGER, "has schema 9999, newer than this program's"),
        ("status --json", "work retry 1"),
        code=2,
    ),
    "ledger: a table is missing": State(
        sql("DROP TABLE work"), ("is half-migrated",), ("doctor --json", "work list"), code=2
    ),
    "catalogue: rubbish": State(
        content("lake/catalog.db", RUBBISH),
        ("the lake's catalog", "catalog.db cannot be read: file is not a database"),
        ("status --json", "plan market", "sql 'SELECT 1'"),
    ),
    "warehouse: made elsewhere": State(
        made_elsewhere,
        (
            "the warehouse was made at /old/lake/warehouse and is now at ",
            "set PERENNIAL_HOME back, or PERENNIAL_WAREHOUSE=/old/lake/warehouse",
        ),
        ("status --json", "market heal"),
    ),
    "dagster: rubbish": State(
        content("dagster/history/runs.db", RUBBISH),
        ("Dagster's storage below PERENNIAL_HOME failed: file is not a database",),
        ("doctor --json", "market heal"),
    ),
    "another source": State(
        lambda _: None,
        ("belongs to source 'sandbox', not 'tushare'",),
        ("status --json", "market daily"),
        code=2,
        changes={"PERENNIAL_SOURCE": "tushare", "TUSHARE_TOKEN": TOKEN, "PERENNIAL_NOW": ""},
    ),
    "no database server": State(
        lambda _: None,
        ("refused", "PERENNIAL_DATABASE_URL"),
        ("status --json", "market heal", "up"),
        changes={
            "PERENNIAL_ENV": "production",
            "PERENNIAL_MARKET_START": "2015-01-01",
            "PERENNIAL_DATABASE_URL": f"postgresql://perennial:{PASSWORD}@127.0.0.1:{{closed}}/perennial",
        },
    ),
    "no server of the catalogue": State(
        lambda _: None,
        ("the lake's catalog cannot be reached", "PERENNIAL_CATALOG_URL"),
        ("sql 'SELECT 1'",),
        changes={"PERENNIAL_CATALOG_URL": f"postgresql://u:{PASSWORD}@127.0.0.1:{{closed}}/catalog"},
    ),
}


@pytest.mark.parametrize(
    ("name", "command"), [(name, command) for name, state in STATES.items() for command in state.commands]
)
def test_command__home_in_disorder__is_one_message(here: Surroundings, name: str, command: str) -> None:
    state = STATES[name]
    state.make(here.home)
    code = 1 if command.split(maxsplit=1)[0] in REPORTING else state.code
    done = here.run(command, **state.changes)
    check(done, command, code, *state.parts)
    if command == "status --json":
        assert all(finding["action"] for finding in done.json["findings"])


def test_market_daily__warehouse_of_another_catalogue__is_refused_and_deletes_nothing(
    here: Surroundings,
) -> None:
    anothers = "lake/warehouse/market/normalized_trade_cal/data/year=2024/1.parquet"
    content(anothers, b"another's")(here.home)
    done = here.run("market daily --json")
    assert done.code == 1
    assert "holds data files that this catalogue does not know" in done.err
    assert (here.home / anothers).read_bytes() == b"another's"
    reported = here.run("status --json").json
    assert reported["needs_a_person"]
    assert "foreign_warehouse" in {finding["reason_code"] for finding in reported["findings"]}


# The source: it answers nothing, or not as Tushare does

SOURCES = {
    "a wrong token": ({"TUSHARE_TOKEN": TOKEN}, ("Tushare refused with code 40101", "Set TUSHARE_TOKEN")),
    "a closed port": (
        {"TUSHARE_URL": f"http://me:{PASSWORD}@127.0.0.1:{{closed}}"},
        ("refused", "see that TUSHARE_URL is right"),
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_doctor__source_does_not_answer__is_what_is_wrong(here: Surroundings, name: str) -> None:
    changes, parts = SOURCES[name]
    here.run("pools apply")
    done = here.run("doctor --json", **changes)
    check(done, "doctor", 1, *parts)
    assert [part["part"] for part in done.json if not part["ok"]] == ["source"]


def test_market_daily__wrong_token__fails_and_names_the_remedy(here: Surroundings) -> None:
    changes, parts = SOURCES["a wrong token"]
    done = here.run("market daily --json", **changes)
    assert (done.code, json.loads(done.out)["ok"]) == (1, False)
    assert parts[0] in done.err
    assert any(line.startswith("failed ") for line in done.err.splitlines())
    check(here.run("status --json", **changes), "status", 1, *parts)
    assert TOKEN not in done.out + done.err
