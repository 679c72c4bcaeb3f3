"""Asking the source: the calls of a pass, and answers kept until all of one reference have come."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from domain.shared.error import PerennialError, TransientResourceError
from resources.objects.store import Store, store_for
from resources.tushare.errors import QuotaUsedUp, RateLimited

if TYPE_CHECKING:
    from resources.tushare.client import Narrow, TushareClient
    from resources.tushare.request import TushareRequest

MINUTES_WAITED = 3
"""How often a call is made again after the source refused it for the minute."""

log = logging.getLogger("perennial.market")


@dataclass
class Caller:
    """The calls of one pass, from any thread. What ends them all is raised by each that follows.

    `patient`: a call that was refused for the minute waits for the next. Deferred in the ledger, days by the
    hundred would come back as a run each.
    """

    source: TushareClient
    patient: bool = True
    halt: PerennialError | None = None
    """The source will answer nothing more for now."""

    def __call__(self, request: TushareRequest, narrow: Narrow | None = None) -> pa.Table:
        for patience in reversed(range(MINUTES_WAITED if self.patient else 1)):
            if self.halt is not None:
                raise self.halt
            try:
                return self.source.fetch(request, narrow=narrow)
            except RateLimited:
                if not patience:
                    raise
            except PerennialError as error:
                if isinstance(error, QuotaUsedUp) or not isinstance(error, TransientResourceError):
                    self.halt = error
                raise
        raise AssertionError("unreachable")


Calls = Mapping[str, "TushareRequest"]
"""The calls that make one partition of a reference, by names that are fit for files."""


@dataclass(frozen=True)
class KeptAnswers:
    """Answers to some of the calls that make a reference, as files, until the others have come too.

    A source that fails a quarter of its calls never answers all of sixteen in one pass. So each pass, of this
    run or of a later one, repeats only the calls that failed. Answers of another day are not used.
    """

    location: str
    store: Store
    workers: int
    """Calls at the same time."""

    @classmethod
    def at(cls, location: str, workers: int) -> KeptAnswers:
        """`file:///path` or `s3://bucket/path`."""
        return cls(location.rstrip("/"), store_for(location), workers)

    def collect(
        self, what: str, calls: Calls, day: date, ask: Callable[[TushareRequest], pa.Table]
    ) -> dict[str, pa.Table]:
        """The answers to all calls, by name. Raises a failure after each was made once; what was answered is
        kept for the next pass."""
        answers = self._kept(what, calls, day)
        failures: list[Exception] = []

        def answer(name: str) -> None:
            try:
                answers[name] = ask(calls[name])
            except Exception as error:  # noqa: BLE001 - raised below, after the other calls
                failures.append(error)

        with ThreadPoolExecutor(self.workers, thread_name_prefix=f"fetch-{what}") as pool:
            try:
                list(pool.map(answer, sorted(calls.keys() - answers.keys())))
            finally:
                pool.shutdown(cancel_futures=True)
        if failures:
            self.keep(what, answers, day)
            raise max(failures, key=_gravity)
        return answers

    def keep(self, what: str, answers: Mapping[str, pa.Table], day: date) -> None:
        """Keep these answers and no others."""
        self.forget(what)
        for name, frame in answers.items():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_file(sink, frame.schema) as file:
                file.write_table(frame)
            self.store.create(self._uri(what, day, name), sink.getvalue().to_pybytes())

    def forget(self, what: str) -> None:
        """Delete what is kept of a reference, of any day."""
        for one in list(self.store.list(f"{self.location}/{what}")):
            self.store.delete(one.uri)

    def _kept(self, what: str, calls: Calls, day: date) -> dict[str, pa.Table]:
        there = {one.uri for one in self.store.list(f"{self.location}/{what}/{day}")}
        found: dict[str, pa.Table] = {}
        for name, request in calls.items():
            uri = self._uri(what, day, name)
            if uri not in there:
                continue
            try:
                frame = pa.ipc.open_file(self.store.read(uri)).read_all()
            except (FileNotFoundError, pa.ArrowException):
                log.warning("the kept answer %s cannot be read; its call is made again", uri)
                self.store.delete(uri)
                continue
            if frame.schema == request.schema:
                found[name] = frame
        return found

    def _uri(self, what: str, day: date, name: str) -> str:
        return f"{self.location}/{what}/{day}/{name}.arrow"


def _gravity(error: Exception) -> int:
    """What decides how a pass ends: a failure that no pass heals, else one that the next may."""
    if not isinstance(error, TransientResourceError) or isinstance(error, QuotaUsedUp):
        return 2
    return int(error.retry_in_run)
