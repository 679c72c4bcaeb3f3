"""Concurrency pools: what is told apart, and that applying closes every difference."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance

from orchestration.instance import open_instance
from orchestration.pools import Drift, apply_pools, drift
from orchestration.settings import Settings

DESIRED = {"tushare": 3, "trino": 2}


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    with open_instance(Settings(home=tmp_path)) as opened:
        yield opened


def limits(instance: DagsterInstance) -> dict[str, int]:
    return {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits()}


def test_a_new_instance_lacks_every_pool(instance: DagsterInstance):
    assert drift(instance, DESIRED) == [Drift("trino", 2, None), Drift("tushare", 3, None)]


def test_applying_sets_changes_and_removes_and_then_has_nothing_to_do(instance: DagsterInstance):
    apply_pools(instance, {"tushare": 5, "forgotten": 1})
    assert apply_pools(instance, DESIRED) == [
        Drift("forgotten", None, 1),
        Drift("trino", 2, None),
        Drift("tushare", 3, 5),
    ]
    assert limits(instance) == DESIRED
    assert drift(instance, DESIRED) == []
    assert apply_pools(instance, DESIRED) == []


def test_a_pool_that_only_has_the_default_limit_is_nobodys_decision(instance: DagsterInstance):
    instance.event_log_storage.initialize_concurrency_limit_to_default("undeclared")
    assert limits(instance) == {"undeclared": 1}
    assert drift(instance, {}) == []
    assert drift(instance, {"undeclared": 1}) == [Drift("undeclared", 1, None)]


def test_differences_read_as_sentences():
    assert str(Drift("tushare", 3, 1)) == "pool tushare should have the limit 3 but has 1"
    assert str(Drift("tushare", 3, None)).endswith("has none of its own")
    assert str(Drift("old", None, 1)).endswith("is declared nowhere")
