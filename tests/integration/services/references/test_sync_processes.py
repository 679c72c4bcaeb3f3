"""Syncs of one source by processes at once: each ends well, and each content is handed over once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from sqlalchemy import func, select

from domain.references.handoffs import Content, handed
from domain.references.jobs import HANDOFF, handoff_id
from services.reconcile import reconcile
from services.references.handoff import drain_handoffs
from services.references.handoff_store import ingestion_handoffs
from services.references.handoff_work import enqueue_handoffs
from services.references.reconcile import ReferencesReconciler
from tests.integration.services.references.fake_source import FakeScraper
from tests.integration.services.references.processes import Worker
from tests.integration.services.references.worker import open_service

REFERENCES = 400
PROCESSES = 4
COUNTS = ("queued", "completed", "failed", "skipped")


def test_sync__four_processes_at_once__hand_each_content_over_once(tmp_path: Path, ledger_url: str):
    service = open_service(tmp_path, ledger_url, FakeScraper())
    service.ledger.migrate()
    workers = [Worker(tmp_path, ledger_url, "sync", str(REFERENCES), "a") for _ in range(PROCESSES)]
    for one in workers:
        one.wait_until_ready()
    for one in workers:
        one.begin()
    outcomes = [one.answer() for one in workers]
    counted = Counter[str]()
    for outcome in outcomes:
        counts = {
            name: outcome[f"handoff_{name}_count"] for name in ("queued", "completed", "failed", "skipped")
        }
        assert sum(counts.values()) == REFERENCES
        counted += counts
    assert counted["failed"] == 0
    drain_handoffs(service, "run-1", 30)  # what came back while another process had it
    with service.ledger.engine.connect() as connection:
        table = ingestion_handoffs.c
        number, references = connection.execute(
            select(func.count(), func.count(table.reference_id.distinct()))
        ).one()
    assert (number, references) == (REFERENCES, REFERENCES)
    jobs = service.ledger.find("references.ingest", limit=None)
    assert len({job.key for job in jobs}) == len(jobs) == REFERENCES
    assert counted["completed"] <= REFERENCES
    _, rows = service.store.handoffs.page("atlas", "completed", None, REFERENCES, 0)
    assert {row.reason_code for row in rows} <= {"ingestion_job_queued", "ingestion_job_already_active"}
    reconcile(ReferencesReconciler(service))
    assert service.store.handoffs.unfinished_counts() == {}
    assert service.plan().verdicts[1].state == "healthy"
    service.ledger.close()


def test_put_and_end__of_the_same_rows_at_once__never_deadlock(tmp_path: Path, ledger_url: str):
    """The order of ids is not the order of references: each wrote its rows in its own order."""
    service = open_service(tmp_path, ledger_url, FakeScraper())
    service.ledger.migrate()
    store = service.store.handoffs
    contents = [Content(f"atlas:{n:03}", "hash", "atlas", "0") for n in range(200)]
    for content in reversed(contents):
        store.put([content], "0")
    enqueue_handoffs(service, store.unfinished("atlas", 0, len(contents)))
    leased = service.ledger.claim(HANDOFF, holder="worker:test", limit=len(contents))
    works = {handoff_id(row.key): row for row in leased}

    def put(turn: int) -> None:
        store.put([replace(content, scrape_run_id=f"{turn + 1:03}") for content in contents], "")

    def end(_: int) -> None:
        store.begin(works)
        store.end(dict.fromkeys(works, handed("ingestion_job_queued")), works)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(do, turn) for turn in range(40) for do in (put, end)]:
            done.result()
    service.ledger.close()
