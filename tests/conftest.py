"""Fixtures any test may ask for: a real Postgres, and an empty database in it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import PostgresMissing, Server, in_memory, running_server

# `make chaos` lets the models whose steps are slow explore for long: --hypothesis-profile=chaos
settings.register_profile("chaos", max_examples=15, stateful_step_count=20)

# Homes of tests are many small databases that are written through to the disk, and gone a moment later.
if memory := in_memory(programs=True):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-sentences", action="store_true", help="write each sentences.txt anew")


@pytest.fixture(scope="session")
def write_sentences(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--write-sentences"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """Where none can be had, CI fails and a laptop skips with the reason."""
    try:
        with running_server() as server:
            yield server
    except PostgresMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def postgres_url(postgres_server: Server) -> str:
    """The server's maintenance database; tests that write ask for `postgres_database`."""
    return postgres_server.url("postgres")


@pytest.fixture
def postgres_database(postgres_server: Server, postgres_url: str) -> Iterator[str]:
    """The address of a fresh, empty database, gone after the test."""
    import sqlalchemy

    name = f"t{uuid.uuid4().hex[:12]}"
    engine = sqlalchemy.create_engine(
        postgres_url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool
    )
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield postgres_server.url(name)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    engine.dispose()
