"""A ledger on each database, and clocks a test may move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, inspect

from domain.shared.backoff import Backoff
from domain.shared.work import Kind
from resources.database.engine import open_engine
from resources.database.migrate import migrate
from resources.database.schema import VERSION_TABLE
from resources.ledger.client import Ledger
from tests.postgres import Server

FILL = Kind("market.fill", transient=Backoff(base=timedelta(seconds=60), cap=timedelta(hours=1)))
FINITE = Kind("records.hook", transient=Backoff(base=timedelta(seconds=10), max_attempts=3))
KINDS = (FILL, FINITE)
START = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)


@dataclass
class SettableClock:
    """A clock that a test moves."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture(scope="session")
def postgres_ledger(postgres_server: Server) -> Iterator[Engine]:
    """A database of the server with the ledger's schema. Making one for each test took most of their time."""
    with create_engine(postgres_server.url("postgres"), isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE ledger")
    engine = open_engine(postgres_server.url("ledger"))
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty ledger of each sort; on Postgres its ids go on from the test before."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/home/ledger.db"
    engine: Engine = request.getfixturevalue("postgres_ledger")
    tables = set(inspect(engine).get_table_names()) - {VERSION_TABLE}
    with engine.begin() as connection:
        connection.exec_driver_sql("; ".join(f"DELETE FROM {name}" for name in sorted(tables)))
    return engine.url.render_as_string(hide_password=False)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def machine() -> SettableClock:
    return SettableClock()


@pytest.fixture
def open_ledger(
    ledger_url: str, clock: SettableClock, machine: SettableClock
) -> Iterator[Callable[[], Ledger]]:
    """Opens further ledgers on the same database, as other processes would."""
    opened: list[Ledger] = []

    def open_one() -> Ledger:
        opened.append(Ledger.open(ledger_url, kinds=KINDS, clock=clock, machine_clock=machine))
        return opened[-1]

    yield open_one
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(open_ledger: Callable[[], Ledger]) -> Ledger:
    ledger = open_ledger()
    ledger.migrate()
    return ledger
