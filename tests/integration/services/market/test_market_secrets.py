"""A planted token, and a database's password, are looked for after a day of faults: nowhere, in no spelling.

The source answers with everything it was asked, the exceptions of its client hold the whole call, and
every command speaks; then each byte that was kept or printed is searched, what is compressed unpacked.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import requests
import sqlalchemy as sa
from dagster._core.remote_representation.external_data import RepositorySnap

from domain.shared.clock import stopped_at
from sandbox.accounts import Account
from sandbox.server import SandboxServer
from sandbox.service import Answer, Service
from tests.integration.services.market.market_app import TODAY, MarketApp, quiet

ROOT = Path(__file__).parents[4]
TOKEN = "Pl4nted+0f/a=r3al~account-9f8e7d6c5b4a"
PASSWORD = "hunter2-0f-the-d4tabase"

READERS = (
    "status",
    "check market",
    "plan market",
    "work list",
    "doctor",
    "settings",
    "pools show",
    "sql 'SELECT * FROM ops.work'",
    "sql 'SELECT * FROM ops.work_event'",
    "sql 'SELECT * FROM market.source_freshness'",
)


# A source that talks too much


def everything(body: bytes) -> str:
    """A call as servers echo it: as it came, and in an address."""
    token = json.loads(body)["token"]
    return f"{body.decode()} ?token={quote(token, safe='')} {token}"


def reported(text: str, **details: Any) -> Answer:
    return Answer(text.encode(), **details)


def refusal(code: object, message: str) -> Answer:
    return reported(json.dumps({"code": code, "msg": message, "data": None}, ensure_ascii=False))


def rows(fields: list[str], *items: list[object]) -> Answer:
    return reported(
        json.dumps({"code": 0, "msg": "", "data": {"fields": fields, "items": items, "has_more": False}})
    )


TALK: dict[str, Callable[[bytes], Answer]] = {
    "HTTP 500": lambda body: reported(everything(body), status=500),
    "a page": lambda body: reported(f"<html>{everything(body)}</html>", content_type="text/html"),
    "a redirect": lambda body: reported(
        everything(body), status=302, headers={"Location": f"/?token={quote(TOKEN, safe='')}"}
    ),
    "half a body": lambda body: reported('{"code": 0, "msg": "' + everything(body), reset=True),
    "broken JSON": lambda body: reported('{"code": 0, "echo": "' + json.loads(body)["token"][:20]),
    "an unknown refusal": lambda body: refusal(1234, everything(body)),
    "a refused token": lambda body: refusal(40101, f"您的token不对，请确认。{everything(body)}"),
    "a wrong value": lambda _: rows(
        ["exchange", "cal_date", "is_open", "pretrade_date"], ["SSE", TOKEN, 1, None]
    ),
}


class Talkative:
    """The sandbox's service, until `talk` is set."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.talk: Callable[[bytes], Answer] | None = None
        self.echoed = 0

    def answer(self, path: str, body: bytes) -> Answer:
        if self.talk is None:
            return self._service.answer(path, body)
        assert json.loads(body)["token"] == TOKEN, "the source did get it"
        self.echoed += 1
        return self.talk(body)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)


@pytest.fixture
def source(empty_app: MarketApp) -> Talkative:
    """The app's source, which knows the planted token and no other."""
    app = empty_app
    port = app.source.port
    app.stop_source()
    server = SandboxServer(
        app.exchange,
        clock=stopped_at(app.now),
        port=port,
        accounts=[Account(TOKEN, 15_000, unlimited=True)],
    )
    talkative = Talkative(server.service)
    server.service = talkative  # type: ignore[assignment]
    server.start()
    app.server = server
    app.set(
        TUSHARE_TOKEN=TOKEN,
        TUSHARE_RETRY_DELAYS="0",
        PERENNIAL_GAP_WINDOW_DAYS="1",
        PERENNIAL_GAP_LIMIT="1",
    )
    return talkative


# The search


def spellings(secret: str) -> set[bytes]:
    """How a secret may be written down."""
    quoted = quote(secret, safe="")
    found = {secret, quoted, quoted.lower(), quote(quoted, safe=""), quote(secret), json.dumps(secret)[1:-1]}
    return {text.encode() for text in {*found, secret[:16]}}


def places_of(secret: str, kept: Iterator[tuple[str, bytes]]) -> list[str]:
    wanted = spellings(secret)
    return [f"{place}: {form!r}" for place, content in kept for form in wanted if form in content]


def files(home: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(home.rglob("*")):
        if path.is_file():
            yield f"{path.relative_to(home)} (its name)", str(path).encode()
            yield str(path.relative_to(home)), path.read_bytes()
            if path.suffix == ".parquet":
                yield f"{path.relative_to(home)} (its words)", words(pq.read_table(path))


def words(table: pa.Table) -> bytes:
    """The texts of a table, each once: Parquet keeps them compressed."""
    texts = [c for c in table.columns if pa.types.is_string(c.type) or pa.types.is_large_string(c.type)]
    return "\n".join(str(text) for column in texts for text in pc.unique(column).to_pylist()).encode()


def rows_of(engine: sa.Engine, name: str) -> Iterator[tuple[str, bytes]]:
    """Every value of every table; what Dagster has compressed, unpacked."""
    with engine.connect() as connection:
        for table in sa.inspect(engine).get_table_names():
            for row in connection.execute(sa.text(f'SELECT * FROM "{table}"')):
                for value in row:
                    yield f"{name}.{table}", unpacked(value)


def unpacked(value: object) -> bytes:
    if not isinstance(value, bytes | memoryview):
        return str(value).encode()
    raw = bytes(value)
    try:
        return zlib.decompress(raw)
    except zlib.error:
        return raw


def databases(home: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(home.rglob("*.db")):
        engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
        yield from rows_of(engine, str(path.relative_to(home)))


def history(app: MarketApp) -> Iterator[tuple[str, bytes]]:
    """What the UI gets of the runs and of the code."""
    with app.instance() as instance:
        runs = instance.get_runs()
        assert len(runs) > len(TALK)
        for run in runs:
            yield f"run {run.run_id}", repr((run.run_config, run.tags)).encode()
            yield f"run {run.run_id}", dg.serialize_value(run).encode()
            for entry in instance.all_logs(run.run_id):
                yield f"event of {run.run_id}", (repr(entry) + entry.to_json()).encode()
    yield "the code location", code_location(app)


def code_location(app: MarketApp) -> bytes:
    with quiet():
        repository = RepositorySnap.from_def(app.definitions.get_repository_def())
    return dg.serialize_value(repository).encode()


def test_search__every_spelling__is_found(tmp_path: Path) -> None:
    """In every spelling, and in what is compressed."""
    call = json.dumps({"api_name": "daily", "token": TOKEN}).encode()
    for text in (everything(call), quote(TOKEN)):
        (tmp_path / "log").write_text(text)
        assert places_of(TOKEN, files(tmp_path)), text
    (tmp_path / "log").unlink()
    pq.write_table(pa.table({"name": [TOKEN] * 1000}), tmp_path / "x.parquet", compression="zstd")
    assert places_of(TOKEN, files(tmp_path))
    engine = sa.create_engine(f"sqlite:///{tmp_path}/x.db", poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (v BLOB)")
        connection.execute(sa.text("INSERT INTO t VALUES (:v)"), {"v": zlib.compress(TOKEN.encode())})
    assert places_of(TOKEN, databases(tmp_path))


# The days


@pytest.mark.chaos
def test_commands__faulty_source__leave_the_token_nowhere(
    empty_app: MarketApp,
    source: Talkative,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = empty_app
    caplog.set_level("DEBUG")
    printed = Printed(app)
    for name, talk in TALK.items():
        before = source.echoed
        source.talk = talk
        printed.ask_again()
        assert printed("market daily", "--json").code == 1
        assert source.echoed > before, f"the source was not asked: {name}"
    with monkeypatch.context() as patch:
        patch.setattr(requests.Session, "request", exploding)
        printed.ask_again()
        assert printed("market daily").code == 1
    assert "trade_cal: RuntimeError at " in str(app.newest("normalized_trade_cal").error)
    for reconcile in READERS:
        printed(reconcile)
        if not reconcile.startswith("check"):
            printed(reconcile, "--json")
    assert len(app.work()) >= 2
    for row in app.work():
        printed(f"work show {row.id}", "--json")

    # It heals with the very same token.
    source.talk = None
    printed.ask_again()
    assert printed("market heal").code == 0
    app.drop("normalized_daily", TODAY)
    source.talk = TALK["HTTP 500"]
    assert printed(f"market backfill --from {TODAY} --to {TODAY}").code == 1
    source.talk = None
    assert printed(f"market backfill --from {TODAY} --to {TODAY}", "--json").code == 0
    printed.child("-v", "doctor")

    log = "".join(repr(vars(record)) for record in caplog.records)
    kept = (*printed.kept, ("the log", log.encode()), *files(app.home), *databases(app.home), *history(app))
    assert places_of(TOKEN, iter(kept)) == []
    assert any(b"<token>" in content for _, content in kept), "what was echoed came as far as this"


@pytest.mark.chaos
def test_commands__on_postgres__leave_its_password_nowhere(
    empty_app: MarketApp, source: Talkative, postgres_database: str
) -> None:
    app = empty_app
    address = postgres_database.replace("perennial@", f"perennial:{PASSWORD}@")
    app.set(PERENNIAL_ENV="production", PERENNIAL_DATABASE_URL=address)
    printed = Printed(app)
    source.talk = TALK["HTTP 500"]
    assert printed("market daily").code == 1
    source.talk = None
    assert printed("market daily", "--json").code == 0
    for reconcile in READERS:
        printed(reconcile)
        if not reconcile.startswith("check"):
            printed(reconcile, "--json")
    nowhere = address.replace("port=", "port=1")
    app.set(PERENNIAL_DATABASE_URL=nowhere)
    for reconcile in ("status", "work list", "migrate", "doctor", "market heal"):
        assert printed(reconcile).code == 1
    app.set(PERENNIAL_DATABASE_URL=address)
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    for secret in (PASSWORD, TOKEN):
        kept = (*printed.kept, *files(app.home), *rows_of(engine, "postgres"))
        assert places_of(secret, iter(kept)) == []
    assert b"PERENNIAL_DATABASE_URL" in code_location(app)
    assert places_of(PASSWORD, iter([("the code location", code_location(app))])) == []


def exploding(session: requests.Session, method: str, url: str, **call: Any) -> requests.Response:
    """A library that fails in an unforeseen way, with the call in its message."""
    raise RuntimeError(f"{url}: cannot send {everything(call['data'])}")


class Printed:
    """Runs commands and keeps what they say."""

    def __init__(self, app: MarketApp) -> None:
        self._platform = app
        self.kept: list[tuple[str, bytes]] = []

    def __call__(self, command: str, *options: str) -> Any:
        said = self._platform.run(*shlex.split(command), *options)
        self._keep(command, said.out, said.err)
        return said

    def ask_again(self) -> None:
        """A person wants it now: what was given up, and what was put off."""
        self._platform.next_minute()
        newest = {row.key: row for row in self._platform.work()}
        for row in newest.values():
            if row.status in ("failed", "deferred"):
                assert self(f"work retry {row.id}").code == 0

    def child(self, *words: str) -> None:
        """With everything that its libraries log."""
        done = subprocess.run(
            [sys.executable, "-m", "orchestration.cli", *words],
            env={**os.environ, "PERENNIAL_LOG_LEVEL": "DEBUG"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self._keep(" ".join(words), done.stdout, done.stderr)

    def _keep(self, command: str, out: str, err: str) -> None:
        assert "Traceback" not in out + err, f"{command}: {out}{err}"
        self.kept += [(f"stdout of {command}", out.encode()), (f"stderr of {command}", err.encode())]
