"""Runs that hold no work are judged by their silence, also where a clock that ran ahead was put back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from domain.shared.backoff import Backoff
from domain.shared.error import TransientResourceError
from domain.shared.work import Kind
from resources.ledger.client import Ledger
from sensors.processes import PROCESS, identity
from sensors.work_sweep import LONG_SILENT_AFTER, sweep

DAY = timedelta(days=1)


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


def started(instance: dg.DagsterInstance) -> str:
    """A run whose last word is of this moment."""
    run = instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.STARTED)
    instance.report_engine_event("at work", run)
    return run.run_id


def words(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [record.event_log_entry.message for record in instance.get_records_for_run(run_id).records]


def test_a_run_is_ended_when_it_has_been_silent_for_long_and_not_before(instance, ledger):
    run_id, now = started(instance), datetime.now(UTC)
    assert sweep(instance, ledger, now + LONG_SILENT_AFTER - timedelta(minutes=1)) == (0, 0)
    assert sweep(instance, ledger, now + LONG_SILENT_AFTER + timedelta(minutes=1)) == (0, 1)
    assert instance.get_run_by_id(run_id).is_finished
    assert len(words(instance, run_id)) > 1


def test_a_last_word_of_tomorrow_is_followed_by_one_of_today(instance, ledger):
    run_id = started(instance)
    yesterday = datetime.now(UTC) - DAY
    assert sweep(instance, ledger, yesterday) == (0, 0), "the clock shows a day less than when the run spoke"
    assert words(instance, run_id)[-1] == "the clock was put back since this run's last word"
    assert not instance.get_run_by_id(run_id).is_finished


def test_silence_counts_from_the_word_that_follows_although_the_run_was_seen_tomorrow(
    instance, ledger, monkeypatch
):
    run_id, now = started(instance), datetime.now(UTC)
    record = instance.get_run_record_by_id(run_id)
    seen_tomorrow = record._replace(update_timestamp=now + DAY)
    monkeypatch.setattr(instance, "get_run_records", lambda *_, **__: [seen_tomorrow])
    assert sweep(instance, ledger, now + LONG_SILENT_AFTER - timedelta(minutes=1)) == (0, 0)
    assert sweep(instance, ledger, now + LONG_SILENT_AFTER + timedelta(minutes=1)) == (0, 1)


def begun_by(instance: dg.DagsterInstance, process: str) -> str:
    """A run of a command that was about to start."""
    tags = {PROCESS: process}
    return instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.NOT_STARTED, tags=tags).run_id


def test_a_run_whose_process_died_before_it_started_is_ended_at_once(instance, ledger):
    """Else its dispatch would be on its way for ever, and its work never sent again."""
    mine = identity()
    assert mine is not None
    *others, born = mine.split()
    gone, alive = begun_by(instance, " ".join([*others, str(int(born) - 1)])), begun_by(instance, mine)
    assert sweep(instance, ledger) == (0, 1)
    assert instance.get_run_by_id(gone).is_finished
    assert not instance.get_run_by_id(alive).is_finished


def test_a_run_that_waits_for_its_start_is_not_judged_by_its_silence(instance, ledger):
    run = instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.NOT_STARTED)
    assert sweep(instance, ledger, datetime.now(UTC) + DAY) == (0, 0)
    assert not instance.get_run_by_id(run.run_id).is_finished


FETCH = Kind("fetch", transient=Backoff(base=timedelta(seconds=60)))


@pytest.mark.parametrize("other_keys", [(), ("other day",)], ids=["holding nothing", "holding work"])
def test_a_run_whose_other_step_takes_long_before_a_retry_comes_is_left_alone(
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
    looks = []

    @dg.op(retry_policy=dg.RetryPolicy(max_retries=1, delay=0.3))
    def first(context) -> None:
        again = context.retry_number > 0
        with ledger.lease(FETCH.name, ["day"], context.run_id, final=again, retry_in=timedelta(seconds=10)):
            if not again:
                raise TransientResourceError("HTTP 503")

    @dg.op
    def second(context) -> None:
        with ledger.lease(FETCH.name, other_keys, context.run_id):
            for _ in range(6):
                machine[0] += timedelta(minutes=10)
                looks.append(eventually_alive(ledger, machine[0]) and sweep(instance, ledger))

    @dg.job(executor_def=dg.in_process_executor)
    def two_steps_job() -> None:
        first()
        second()

    result = two_steps_job.execute_in_process(instance=instance)
    rows = ledger.find(FETCH.name)
    ledger.close()
    assert looks == [(0, 0)] * 6
    assert result.success
    assert {row.key for row in rows} == {"day", *other_keys}
    assert {(row.status, row.attempts, row.strikes) for row in rows} == {("completed", 1, 0)}


def eventually_alive(ledger: Ledger, machine_now: datetime) -> bool:
    """Whether every holder says in time that it lives."""
    never = threading.Event()
    return any(
        all(row.lease_until > machine_now for row in ledger.running()) or never.wait(0.01) for _ in range(500)
    )
