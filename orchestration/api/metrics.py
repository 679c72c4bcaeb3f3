"""`GET /metrics`: the platform for Prometheus.

Gauges are read when they are scraped, from indexes of unfinished work. Counters and durations begin with this
process, as Prometheus expects: each scrape adds the events since the one before.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from math import inf

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.shared.health import ORDER, is_healthy
from orchestration.api.recent import Recent
from orchestration.health import Overview
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.activity import BOUNDS, Activity
from resources.ledger.client import Ledger

SETTLED_SECONDS = 2.0
"""An event is counted so long after it was first seen: Postgres may still commit one with a smaller id."""
ENDINGS = ("failed", "deferred", "abandoned")
"""Events that end an attempt that failed; the error of an orphan or of a retried row is an older one."""
_TAKEN_BACK = ("orphaned", "abandoned")
_EXAMPLE = 'perennial_work{kind="orders.fill",status="queued"} 3.0'

Rows = Iterable[tuple[Sequence[str], float]]


def routes(settings: Settings, seen: Recent[Overview], calls: CollectorRegistry) -> APIRouter:
    """`calls` has what is counted of the calls of this process."""
    router = APIRouter(tags=["health"])
    ProcessCollector(registry=calls)
    platform = PlatformCollector(settings, seen)

    @router.get(
        "/metrics",
        summary="Work, backlog, failures, findings and freshness for Prometheus",
        response_class=PlainTextResponse,
        responses={200: {"content": {"text/plain": {"example": _EXAMPLE}}}},
    )
    def metrics() -> Response:
        """Counters begin with this process. 503 while the ledger cannot be read."""
        text = b"".join(map(generate_latest, (calls, _Kept(list(platform.collect())))))
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return router


class _Kept(CollectorRegistry):
    """What was collected before: an error while collecting must come before the answer begins."""

    def __init__(self, metrics: list[Metric]) -> None:
        super().__init__()
        self.metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self.metrics


class PlatformCollector(Collector):
    def __init__(
        self, settings: Settings, seen: Recent[Overview], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._seen, self._clock = settings, seen, clock
        self._lock = threading.Lock()
        self._marks: list[tuple[float, int]] = []
        self._counted: int | None = None
        self._events: Counter[tuple[str, str, str]] = Counter()
        self._failures: Counter[tuple[str, str, str]] = Counter()
        self._buckets: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * len(BOUNDS))
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)

    def collect(self) -> Iterator[Metric]:
        with closing(open_ledger(self._settings)) as ledger:
            yield from self._work(ledger)
            yield from _backlog(ledger)
            yield from _freshness(ledger)
            with self._lock:
                self._count(Activity(ledger.engine))
                yield from self._counted_events()
        yield from self._health()

    def _work(self, ledger: Ledger) -> Iterator[Metric]:
        now, found = ledger.clock(), Activity(ledger.engine).unfinished()
        labels = ("kind", "status")
        yield _gauge(
            "perennial_work",
            "Unfinished work items.",
            labels,
            (((one.kind, one.status), one.number) for one in found),
        )
        yield _gauge(
            "perennial_work_oldest_age_seconds",
            "Age of the oldest unfinished work item.",
            labels,
            (((one.kind, one.status), (now - one.oldest).total_seconds()) for one in found),
        )

    def _count(self, activity: Activity) -> None:
        """Add the events since the last count, but not those that are newer than `SETTLED_SECONDS`."""
        newest, now = activity.newest_event(), self._clock()
        if self._counted is None:
            self._counted = newest
        self._marks.append((now, newest))
        settled = [mark for mark in self._marks if mark[0] <= now - SETTLED_SECONDS]
        if not settled:
            return
        until = settled[-1][1]
        for one in activity.between(self._counted, until):
            self._events[one.kind, one.event, one.reason_code] += one.number
            if one.failed and one.event in ENDINGS:
                self._failures[one.kind, one.event, one.reason_code] += one.number
            if one.bucket is not None:
                self._buckets[one.kind, one.status][one.bucket] += one.number
                self._seconds[one.kind, one.status] += one.seconds
        self._counted = until
        self._marks = [settled[-1], *self._marks[len(settled) :]]

    def _counted_events(self) -> Iterator[Metric]:
        yield _counter(
            "perennial_work_events",
            "Transitions of work items.",
            ("kind", "event", "reason_code"),
            self._events.items(),
        )
        yield _counter(
            "perennial_work_failures",
            "Attempts that failed: for good, put off, or given up after deaths of their workers.",
            ("kind", "event", "reason_code"),
            self._failures.items(),
        )
        taken: Counter[tuple[str]] = Counter()
        for (kind, event, _), number in self._events.items():
            taken[(kind,)] += number if event in _TAKEN_BACK else 0
        yield _counter(
            "perennial_leases_taken_back", "Leases taken back from dead holders.", ("kind",), taken.items()
        )
        durations = HistogramMetricFamily(
            "perennial_work_duration_seconds",
            "From the first claim to the end, waits between attempts included.",
            labels=("kind", "status"),
        )
        for labels, numbers in sorted(self._buckets.items()):
            sums = [
                ("+Inf" if bound == inf else str(bound), sum(numbers[: n + 1]))
                for n, bound in enumerate(BOUNDS)
            ]
            durations.add_metric(labels, sums, self._seconds[labels])
        yield durations

    def _health(self) -> Iterator[Metric]:
        seen = self._seen.get()
        domains = ("platform", *self._settings.domains)
        numbers = Counter({(domain, health): 0 for domain in domains for health in ORDER})
        numbers.update((finding.domain, finding.health) for finding in seen.found)
        yield _gauge("perennial_findings", "Unhealthy things.", ("domain", "health"), numbers.items())
        yield _gauge(
            "perennial_healthy", "1 if nothing is unhealthy.", (), [((), float(is_healthy(seen.found)))]
        )
        yield _gauge(
            "perennial_daemon_up", "1 if Dagster's daemon runs.", (), [((), float(seen.daemon_runs))]
        )


def _backlog(ledger: Ledger) -> Iterator[Metric]:
    found = [(kind, tenant, one) for kind in ledger.kinds for tenant, one in ledger.backlog(kind).items()]
    yield _gauge(
        "perennial_backlog",
        "Unfinished work items by tenant; due ones are waiting ones too.",
        ("kind", "tenant", "state"),
        (
            ((kind, tenant, state), getattr(one, state))
            for kind, tenant, one in found
            for state in ("due", "waiting", "running")
        ),
    )


def _freshness(ledger: Ledger) -> Iterator[Metric]:
    found = ledger.freshness.all()
    for name, text in (("success", "answered"), ("failure", "failed")):
        yield _gauge(
            f"perennial_source_last_{name}_timestamp_seconds",
            f"When a source last {text}.",
            ("source",),
            (
                ((one.source,), moment.timestamp())
                for one in found
                if isinstance(moment := getattr(one, f"last_{name}"), datetime)
            ),
        )
    yield _gauge(
        "perennial_source_rows_today",
        "Rows of a source on its last success.",
        ("source",),
        (((one.source,), one.rows_today) for one in found if one.rows_today is not None),
    )


def _gauge(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    metric = GaugeMetricFamily(name, text, labels=labels)
    for values, number in rows:
        metric.add_metric(values, number)
    return metric


def _counter(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    metric = CounterMetricFamily(name, text, labels=labels)
    for values, number in rows:
        metric.add_metric(values, number)
    return metric
