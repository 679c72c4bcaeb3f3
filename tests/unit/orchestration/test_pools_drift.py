"""Concurrency pools: what is told apart, and that applying closes every difference."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance
from sqlalchemy.exc import IntegrityError

from orchestration.instance import open_instance
from orchestration.pools import Drift, apply_pools, drift, ensure_pools
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


def test_applying_sets_and_changes_what_is_declared_and_then_has_nothing_to_do(instance: DagsterInstance):
    apply_pools(instance, {"tushare": 5, "of another team": 1})
    assert apply_pools(instance, DESIRED) == [Drift("trino", 2, None), Drift("tushare", 3, 5)]
    assert limits(instance) == DESIRED | {"of another team": 1}
    assert drift(instance, DESIRED) == []
    assert apply_pools(instance, DESIRED) == []


def test_before_a_run_only_what_is_missing_is_set(instance: DagsterInstance):
    apply_pools(instance, {"tushare": 5, "of another team": 1})
    ensure_pools(instance, DESIRED)
    assert limits(instance) == {"tushare": 5, "trino": 2, "of another team": 1}
    assert drift(instance, DESIRED) == [Drift("tushare", 3, 5)], "which `doctor` tells"


def test_a_pool_that_only_has_the_default_limit_is_nobodys_decision(instance: DagsterInstance):
    instance.event_log_storage.initialize_concurrency_limit_to_default("undeclared")
    assert limits(instance) == {"undeclared": 1}
    assert drift(instance, {}) == []
    assert drift(instance, {"undeclared": 1}) == [Drift("undeclared", 1, None)]


def test_differences_read_as_sentences():
    assert str(Drift("tushare", 3, 1)) == "pool tushare should have the limit 3 but has 1"
    assert str(Drift("tushare", 3, None)).endswith("has none of its own")


def test_two_that_apply_at_once_both_succeed(instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch):
    ours = instance.event_log_storage.set_concurrency_slots

    def beaten(pool: str, limit: int) -> None:
        """Each pool's row is made by the other between our look and our insert."""
        if pool in limits(instance):
            ours(pool, limit)
            return
        ours(pool, limit)
        raise IntegrityError("INSERT INTO concurrency_limits", {}, Exception("duplicate key"))

    monkeypatch.setattr(instance.event_log_storage, "set_concurrency_slots", beaten)
    assert len(apply_pools(instance, DESIRED)) == len(DESIRED)
    assert limits(instance) == DESIRED


def test_an_insert_that_always_fails_is_told(instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch):
    def fails(*_: object) -> None:
        raise IntegrityError("INSERT INTO concurrency_limits", {}, Exception("no such pool"))

    monkeypatch.setattr(instance.event_log_storage, "set_concurrency_slots", fails)
    with pytest.raises(IntegrityError):
        apply_pools(instance, DESIRED)
