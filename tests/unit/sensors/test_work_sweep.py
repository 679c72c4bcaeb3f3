"""Runs that hold no work are judged by their silence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from assets.policies.tags import DISPATCH
from domain.shared.backoff import Backoff
from domain.shared.error import TransientResourceError
from domain.shared.work import Kind
from resources.ledger.client import Ledger
from sensors.work_sweep import LONG_SILENT_AFTER, ORIGIN, SILENT_AFTER, STARTS_WITHIN, end_interrupted, sweep


@dg.job
def at_work_job() -> None: ...


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.db", kinds=(), clock=lambda: datetime.now(UTC))
    ledger.migrate()
    yield ledger
    ledger.close()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("status", "tags", "patience"),
    [
        (dg.DagsterRunStatus.STARTED, {ORIGIN: "command"}, SILENT_AFTER),
        (dg.DagsterRunStatus.STARTED, {DISPATCH: "1"}, SILENT_AFTER),
        (dg.DagsterRunStatus.NOT_STARTED, {ORIGIN: "command"}, STARTS_WITHIN),
        (dg.DagsterRunStatus.STARTING, {DISPATCH: "1"}, STARTS_WITHIN),
        (dg.DagsterRunStatus.STARTED, {}, LONG_SILENT_AFTER),
    ],
)
def test_sweep__run_holds_nothing_and_is_silent__is_ended_after_its_time(
    instance, ledger, status, tags, patience
):
    """Else its dispatch would be on its way for ever, and its work never sent again."""
    run = instance.create_run_for_job(at_work_job, status=status, tags=tags)
    instance.report_engine_event("at work", run)
    now = datetime.now(UTC)
    assert sweep(instance, ledger, now + patience - MINUTE) == (0, 0)
    assert sweep(instance, ledger, now + patience + MINUTE) == (0, 1)
    assert instance.get_run_by_id(run.run_id).is_finished


def test_sweep__command_was_killed__its_run_is_ended_at_once(instance, ledger):
    runs = [instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.STARTED) for _ in range(2)]
    dead = runs[0].run_id
    assert sweep(instance, ledger, is_dead=lambda run_id: run_id == dead) == (0, 1)
    ended = [instance.get_run_by_id(run.run_id).status for run in runs]
    assert ended == [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED]


def test_end_interrupted__run_holds_work__is_cancelled_and_its_work_given_back(instance, ledger):
    ledger = ledger.with_kinds([FETCH])
    runs = [instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.STARTED) for _ in range(2)]
    ours, other = (run.run_id for run in runs)
    for run_id in (ours, other):
        ledger.lease(FETCH.name, [f"day of {run_id}"], run_id, heartbeat=False).__enter__()
    end_interrupted(instance, ledger, lambda run_id: run_id == ours)
    ended = [instance.get_run_by_id(run.run_id).status for run in runs]
    assert ended == [dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.STARTED]
    assert {row.key: row.status for row in ledger.find(FETCH.name)} == {
        f"day of {ours}": "queued",
        f"day of {other}": "running",
    }


FETCH = Kind("fetch", transient=Backoff(base=timedelta(seconds=60)))


@pytest.mark.parametrize("other_keys", [(), ("other day",)], ids=["holding nothing", "holding work"])
def test_sweep__other_step_takes_long_before_a_retry__run_is_left_alone(
    instance, tmp_path, monkeypatch, other_keys
):
    """Dagster does not sit out a retry: it does the next step first, and that may take an hour."""
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    machine = [datetime.now(UTC)]
    ledger = Ledger.open(
        f"sqlite:///{tmp_path}/two_steps.db",
        kinds=[FETCH],
        clock=lambda: machine[0],
        machine_clock=lambda: machine[0],
    )
    ledger.migrate()
    passes = []

    @dg.op(retry_policy=dg.RetryPolicy(max_retries=1, delay=0.3))
    def first(context) -> None:
        again = context.retry_number > 0
        retry_in = None if again else timedelta(seconds=10)
        with ledger.lease(FETCH.name, ["day"], context.run_id, retry_in=retry_in):
            if not again:
                raise TransientResourceError("HTTP 503")

    @dg.op
    def second(context) -> None:
        with ledger.lease(FETCH.name, other_keys, context.run_id):
            for _ in range(6):
                machine[0] += timedelta(minutes=10)
                passes.append(eventually_alive(ledger, machine[0]) and sweep(instance, ledger))

    @dg.job(executor_def=dg.in_process_executor)
    def two_steps_job() -> None:
        first()
        second()

    result = two_steps_job.execute_in_process(instance=instance)
    rows = ledger.find(FETCH.name)
    ledger.close()
    assert passes == [(0, 0)] * 6
    assert result.success
    assert {row.key for row in rows} == {"day", *other_keys}
    assert {(row.status, row.attempts, row.crash_count) for row in rows} == {("completed", 1, 0)}


def eventually_alive(ledger: Ledger, machine_now: datetime) -> bool:
    """Whether every holder renews its lease in time."""
    never = threading.Event()
    return any(
        all(row.lease_until > machine_now for row in ledger.running()) or never.wait(0.01) for _ in range(500)
    )
