"""Runs that pull a kind of work, as Dagster knows them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from assets.policies.tags import DISPATCH, ONLY, PULLS, REASON
from domain.shared.table import ALL
from sensors.reconcile import resting, run_request, unfinished
from services.reconcile import RunStart

POST = "mail.post"
MINUTE = timedelta(minutes=1)


@dg.job
def post_job() -> None: ...


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def test_run_request__start_pulls_a_kind__run_has_its_tag_and_the_range_of_its_tenants():
    start = RunStart("d1", "post", ("letters",), ("atlas", "inbox"), 0, "7 due", pulls=POST)
    request = run_request(start)
    assert (request.run_key, request.asset_selection) == ("d1", [dg.AssetKey(["post", "letters"])])
    assert (request.tags[PULLS], request.tags[REASON], request.tags[DISPATCH]) == (POST, "7 due", "d1")
    assert [v for k, v in request.tags.items() if "range" in k] == ["atlas", "inbox"]
    assert ONLY in request.tags


def test_run_request__pulled_asset_has_no_partitions__run_has_none():
    request = run_request(RunStart("d1", "post", ("letters",), (ALL,), 0, "7 due", pulls=POST))
    assert request.partition_key is None
    assert not [k for k in request.tags if "range" in k]


def test_unfinished__run_pulls__names_its_kind_until_it_ends(instance):
    run = instance.create_run_for_job(
        post_job, status=dg.DagsterRunStatus.STARTED, tags={DISPATCH: "1", PULLS: POST}
    )
    assert unfinished(instance).pulling == {POST}
    instance.report_run_canceled(run)
    assert unfinished(instance).pulling == frozenset()


def test_resting__runs_failed__wait_grows_with_each(instance):
    """Else a run that fails before it leases anything is started by every tick."""
    now = datetime.now(UTC)
    assert resting(instance, now) == frozenset()
    for minutes in (1, 2, 4):
        run = instance.create_run_for_job(post_job, tags={DISPATCH: "1", PULLS: POST})
        instance.report_run_failed(run)
        assert resting(instance, now + minutes * MINUTE - timedelta(seconds=5)) == {POST}
        assert resting(instance, now + minutes * MINUTE + timedelta(seconds=5)) == frozenset()


def test_resting__other_runs_failed_and_pulls_succeeded__nothing_rests(instance):
    failed = instance.create_run_for_job(post_job, tags={DISPATCH: "1"})
    instance.report_run_failed(failed)
    instance.create_run_for_job(post_job, status=dg.DagsterRunStatus.SUCCESS, tags={PULLS: POST})
    assert resting(instance, datetime.now(UTC)) == frozenset()
