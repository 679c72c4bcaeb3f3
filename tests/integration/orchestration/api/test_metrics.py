"""`GET /metrics`: what Prometheus reads, from a real ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from domain.carbon.jobs import AGGREGATION as KIND
from domain.shared.error import TransientResourceError
from domain.shared.health import Finding
from domain.shared.work import WorkRequest
from orchestration.api.metrics import PlatformCollector
from orchestration.api.recent import Recent
from orchestration.health import Overview
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from tests.integration.orchestration.api.conftest import Api

LOOKED_AT = datetime(2026, 11, 17, tzinfo=UTC)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def collector(settings: Settings, clock: Clock) -> PlatformCollector:
    finding = Finding("carbon", "carbon_reports:2025", "broken", "missing", "it was never made")
    return PlatformCollector(settings, Recent(lambda: Overview([finding], LOOKED_AT)), clock)


def samples(metrics: list[Metric]) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in metrics
        for sample in metric.samples
    }


def enqueue(ledger: Ledger, *years: int) -> None:
    ledger.enqueue([WorkRequest(KIND, f"carbon_reports:{year}", "f", tenant="main") for year in years])


def test_metrics__work_waits_and_runs__is_counted_by_kind_status_and_tenant(
    ledger: Ledger, collector: PlatformCollector
) -> None:
    enqueue(ledger, 2024, 2025)
    with ledger.lease(KIND, ["carbon_reports:2024"], "run", heartbeat=False) as lease:
        found = samples(list(collector.collect()))
        lease.complete("carbon_reports:2024")
    assert found["perennial_work", KIND, "queued"] == 1
    assert found["perennial_work", KIND, "running"] == 1
    assert 0 <= found["perennial_work_oldest_age_seconds", KIND, "queued"] < 60
    for state in ("due", "waiting", "running"):
        assert found["perennial_backlog", KIND, "main", state] == 1


def test_metrics__scraped_again__adds_what_happened_since(
    ledger: Ledger, collector: PlatformCollector, clock: Clock
) -> None:
    enqueue(ledger, 2020)
    assert not any(name[0].startswith("perennial_work_events") for name in samples(list(collector.collect())))
    enqueue(ledger, 2024, 2025, 2026)
    keys = [f"carbon_reports:{year}" for year in (2024, 2025, 2026)]
    with ledger.lease(KIND, keys, "run", heartbeat=False) as lease:
        lease.complete(keys[0])
        lease.defer(keys[1], TransientResourceError("away", reason_code="source_down"))
        lease.fail(keys[2], "no")
    list(collector.collect())
    for _ in range(2):  # a third scrape counts nothing twice
        clock.now += 10
        found = samples(list(collector.collect()))
        assert found["perennial_work_events_total", KIND, "created", ""] == 3
        assert found["perennial_work_duration_seconds_count", KIND, "completed"] == 1
        assert found["perennial_work_duration_seconds_bucket", KIND, "completed", "1.0"] == 1
        assert found["perennial_work_duration_seconds_bucket", KIND, "completed", "+Inf"] == 1
    failures = {name[2]: value for name, value in found.items() if name[0] == "perennial_work_failures_total"}
    assert failures == {"deferred": 1, "failed": 1}
    assert found["perennial_work_failures_total", KIND, "deferred", "source_down"] == 1


def test_metrics__worker_died__counts_the_lease_that_was_taken_back(
    ledger: Ledger, collector: PlatformCollector, clock: Clock
) -> None:
    enqueue(ledger, 2025)
    list(collector.collect())
    ledger.claim(KIND, holder="worker:dead", limit=1)
    assert ledger.sweep(finished_runs=(), now=datetime.now(UTC) + timedelta(minutes=10))
    list(collector.collect())
    clock.now += 10
    assert samples(list(collector.collect()))["perennial_leases_taken_back_total", KIND] == 1


def test_metrics__findings_and_sources__are_counted(ledger: Ledger, collector: PlatformCollector) -> None:
    ledger.freshness.succeeded("market.daily", rows_latest=5, rows_today=7)
    ledger.freshness.failed("market.adj", "away")
    found = samples(list(collector.collect()))
    assert found["perennial_findings", "carbon", "broken"] == 1
    assert found["perennial_findings", "market", "broken"] == 0
    assert found["perennial_healthy",] == 0
    assert found["perennial_source_rows_today", "market.daily"] == 7
    assert found["perennial_source_last_success_timestamp_seconds", "market.daily"] > 1.7e9
    assert ("perennial_source_last_success_timestamp_seconds", "market.adj") not in found
    assert found["perennial_source_last_failure_timestamp_seconds", "market.adj"] > 1.7e9


def test_metrics__over_http__are_what_prometheus_parses(api: Api, ledger: Ledger) -> None:
    enqueue(ledger, 2025)
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert families["perennial_work"].samples[0].labels == {"kind": KIND, "status": "queued"}
    assert "process_resident_memory_bytes" in families
    api.get("/nowhere/77")
    api.get("/work/77")
    text = api.get("/metrics").text
    for labels in ('method="GET",route="/work/{id}",status="404"', 'method="any",route="none",status="404"'):
        assert f"perennial_http_request_duration_seconds_count{{{labels}}} 1.0" in text
    assert "77" not in [part for part in text.split('"') if part.isdigit()]


def test_metrics__no_ledger__is_a_problem_with_its_reason(api: Api) -> None:
    answer = api.get("/metrics")
    assert (answer.status_code, answer.json()["code"]) == (503, "ledger_schema")
