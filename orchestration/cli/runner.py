"""Runs in this process, through Dagster, with the same ledger as those of every other origin."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from orchestration import registry
from orchestration.cli.interrupt import clean_up
from orchestration.cli.output import say
from orchestration.cli.progress import progress
from orchestration.presence import Presence, command_of, commands_folder
from orchestration.settings import Settings

if TYPE_CHECKING:
    import dagster as dg
    from dagster_shared.error import SerializableErrorInfo

    from resources.ledger.client import Ledger
    from services.reconcile import RunStart, Unfinished


T = TypeVar("T")
NAMED = 6
"""Partitions of a run that are named on the terminal."""
DAEMON_SILENT = 90.0
"""Seconds after its last heartbeat in which a daemon may live: it sends one every 30."""


@dataclass(frozen=True)
class RunEnd:
    run_id: str
    success: bool
    errors: tuple[str, ...]

    @property
    def word(self) -> str:
        return "done   " if self.success else "failed "


class Runner:
    """Dagster, opened once per command: the instance, the definitions, the one job over all assets.

    It executes runs in this process, as `services/run_until_idle.py` needs them (`Runs`).
    """

    def __init__(self, settings: Settings, instance: dg.DagsterInstance, presence: Presence) -> None:
        from orchestration.build import build_definitions
        from orchestration.instance import note_origin

        self.settings = settings
        self.instance = instance
        self._presence = presence
        self._job = build_definitions(settings).resolve_implicit_global_asset_job_def()
        note_origin(instance, self._job.name)
        self.started: list[RunStart] = []
        self._shown = ""
        self._run_ids: list[str] = []

    def sweep(self, ledger: Ledger) -> None:
        """Do what the sweep sensor does; of commands that were killed, at once."""
        from sensors.work_sweep import sweep

        dead = self._presence.dead()
        swept, ended = sweep(self.instance, ledger, is_dead=lambda run_id: command_of(run_id) in dead)
        self._presence.forget(dead)
        self._take_over_queue(ledger)
        if swept or ended:
            say(f"took back {swept} pieces of work from dead workers, ended {ended} runs they left")

    def unfinished(self) -> Unfinished:
        from sensors.reconcile import unfinished

        return unfinished(self.instance)

    def alone(self) -> bool:
        """Whether no other command of this machine and no daemon lives; elsewhere others may."""
        return self.settings.env == "embedded" and not self._daemon_lives() and self._presence.alone()

    def _daemon_lives(self) -> bool:
        beats = (beat.timestamp for beat in self.instance.get_daemon_heartbeats().values())
        return max(beats, default=0.0) > time.time() - DAEMON_SILENT

    def _take_over_queue(self, ledger: Ledger) -> None:
        """End queued runs that no daemon will start; their work is dispatched again.

        Of production the daemon may live elsewhere. Work of another domain this command would not do.
        """
        import dagster as dg

        from assets.policies.tags import DISPATCH, PULLS

        if self.settings.env != "embedded" or self._daemon_lives():
            return
        for run in self.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])):
            if DISPATCH not in run.tags:
                continue
            of = {w.kind for w in ledger.sent(run.tags[DISPATCH])} | {run.tags.get(PULLS)} - {None}
            if of <= ledger.kinds.keys():
                self.instance.report_run_canceled(run, "no daemon runs: a command does its work")

    def report_waiting(self, keys: Sequence[str]) -> None:
        shown = ", ".join(keys[:NAMED]) + (f" and {len(keys) - NAMED} more" if len(keys) > NAMED else "")
        if shown != self._shown:
            say(f"waiting for other runs that have {shown}")
        self._shown = shown

    def has_ended(self, dispatch_id: str) -> bool:
        import dagster as dg

        from assets.policies.tags import DISPATCH

        runs = self.instance.get_runs(dg.RunsFilter(tags={DISPATCH: dispatch_id}))
        return bool(runs) and all(run.is_finished for run in runs)

    def give_up(self) -> str:
        """Give back what the run of this moment has, and end it; return how many partitions this command
        committed, by table."""
        from orchestration.services import open_ledger
        from sensors.work_sweep import end_interrupted

        ledger = open_ledger(self.settings)
        kept = ledger.completed_by(self._run_ids)
        # What escapes this, as a run that is only being created, the next command ends: the presence stays.
        end_interrupted(self.instance, ledger, lambda run_id: run_id in self._run_ids)
        return ", ".join(f"{table} {count:,}" for table, count in kept.items())

    def start(self, start: RunStart) -> RunEnd:
        from sensors.reconcile import run_request

        request = run_request(start)
        end = self.run(
            start.tables, namespace=start.namespace, partition=request.partition_key, tags=request.tags
        )
        self.started.append(start)
        count = len(start.partitions)
        report_run(
            ", ".join(start.partitions) if count <= NAMED else f"{count} partitions", start.tables, end
        )
        return end

    def run(
        self,
        tables: Sequence[str],
        *,
        namespace: str,
        partition: str | None = None,
        days: tuple[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> RunEnd:
        """Materialise tables of a namespace: unpartitioned, one partition, or a range of days in one run."""
        import dagster as dg

        from assets.policies.tags import BY_A_PERSON, DISPATCH
        from sensors.work_sweep import ORIGIN

        all_tags = dict(tags or {})
        if DISPATCH not in all_tags:
            all_tags |= {ORIGIN: "command", **BY_A_PERSON}
        if days is not None:
            all_tags |= {
                "dagster/asset_partition_range_start": days[0],
                "dagster/asset_partition_range_end": days[1],
            }
        with warnings.catch_warnings(), progress():
            warnings.simplefilter("ignore")
            self._run_ids.append(self._presence.new_run_id())
            execute = partial(
                self._job.execute_in_process,
                instance=self.instance,
                asset_selection=[dg.AssetKey([namespace, name]) for name in tables],
                partition_key=partition,
                tags=all_tags,
                run_id=self._run_ids[-1],
                raise_on_error=False,
                # Its events are in the instance; on a terminal they would bury the answer.
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )
            result = _in_a_thread(execute)
        failures = [event.step_failure_data for event in result.all_events if event.is_step_failure]
        # Steps that were skipped because another one failed have no error.
        errors = [(error, failure.user_failure_data) for failure in failures if (error := failure.error)]
        messages = [(data and data.description) or _first_line(error) for error, data in errors]
        return RunEnd(result.run_id, result.success, tuple(messages))


def _in_a_thread(work: Callable[[], T]) -> T:
    """Do this while the main thread waits: it can end the process at any time (`interrupt.py`)."""
    done: Future[T] = Future()

    def body() -> None:
        # Of a terminal's Ctrl-C the processes that Dagster starts for a run would each print a stack.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=body, name="run", daemon=True).start()
    return done.result()


def _first_line(error: SerializableErrorInfo) -> str:
    """The first line of an error; of Dagster's error about the retry policy, that of its cause."""
    if error.cls_name == "RetryRequestedFromPolicy" and error.cause is not None:
        error = error.cause
    line: str = error.message.strip().splitlines()[0]
    kind, _, message = line.partition(": ")
    return message if message and "." in kind and " " not in kind else line


@contextmanager
def runner(settings: Settings) -> Iterator[Runner]:
    from orchestration.environments import prepare_process
    from orchestration.instance import open_instance
    from orchestration.pools import apply_pools

    prepare_process()
    with open_instance(settings) as instance, closing(Presence(commands_folder(settings.home))) as presence:
        apply_pools(instance, registry.pools(settings), only_new=True)
        run = Runner(settings, instance, presence)
        with clean_up(run.give_up):
            yield run


def report_run(partitions: str, tables: Sequence[str], end: RunEnd) -> None:
    say(f"{end.word} {partitions}: {', '.join(tables)}")
    for error in end.errors:
        say(f"        {error}")
