"""Concurrency pools: which differences there are, and that applying closes them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance
from sqlalchemy.exc import IntegrityError

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


def test_drift__new_instance__names_every_pool(instance: DagsterInstance):
    assert drift(instance, DESIRED) == [Drift("trino", 2, None), Drift("tushare", 3, None)]


def test_apply_pools__missing_and_other_limits__sets_them_once(instance: DagsterInstance):
    apply_pools(instance, {"tushare": 5, "of another team": 1})
    assert apply_pools(instance, DESIRED) == [Drift("trino", 2, None), Drift("tushare", 3, 5)]
    assert limits(instance) == DESIRED | {"of another team": 1}
    assert drift(instance, DESIRED) == []
    assert apply_pools(instance, DESIRED) == []


def test_apply_pools__person_set_a_limit__sets_only_what_is_missing(instance: DagsterInstance):
    apply_pools(instance, {"tushare": 5, "of another team": 1})
    apply_pools(instance, DESIRED, only_new=True)
    assert limits(instance) == {"tushare": 5, "trino": 2, "of another team": 1}
    assert drift(instance, DESIRED) == [Drift("tushare", 3, 5)]


def test_drift__pool_has_the_default_limit__counts_as_none(instance: DagsterInstance):
    instance.event_log_storage.initialize_concurrency_limit_to_default("undeclared")
    assert limits(instance) == {"undeclared": 1}
    assert drift(instance, {}) == []
    assert drift(instance, {"undeclared": 1}) == [Drift("undeclared", 1, None)]


def test_apply_pools__another_process_sets_the_same_limit__succeeds(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    ours = instance.event_log_storage.set_concurrency_slots

    def beaten(pool: str, limit: int) -> None:
        """The other process inserts the row of each pool first."""
        ours(pool, limit)
        raise IntegrityError("INSERT INTO concurrency_limits", {}, Exception("duplicate key"))

    monkeypatch.setattr(instance.event_log_storage, "set_concurrency_slots", beaten)
    assert len(apply_pools(instance, DESIRED)) == len(DESIRED)
    assert limits(instance) == DESIRED
