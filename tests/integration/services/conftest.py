"""Runs in the test's process, without what Dagster does only for a terminal."""

from collections.abc import Iterator

import pytest

from tests.dagster_home import light_dagster


@pytest.fixture(autouse=True, scope="session")
def light_runs() -> Iterator[None]:
    with light_dagster():
        yield
