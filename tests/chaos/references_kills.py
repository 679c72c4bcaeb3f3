"""Rounds in which syncs of references die: kill -9 at random moments, on both databases."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import select

from domain.references.handoffs import SUPERSEDED_BY_NEWER
from domain.references.tables import REFERENCES as TABLE
from domain.shared.clock import machine_clock
from services.reconcile import reconcile
from services.references.handoff import drain_handoffs
from services.references.handoff_store import ingestion_handoffs
from services.references.reconcile import ReferencesReconciler
from services.references.service import ReferencesService
from tests.chaos.home import has_postgres, postgres_url
from tests.chaos.rounds import Findings, Round
from tests.integration.services.references.fake_source import FakeScraper
from tests.integration.services.references.processes import Worker
from tests.integration.services.references.worker import SOURCE, open_service

REFERENCES = 2_000
BATCH = "300"
TEXTS = "abc"


def rounds(number: int) -> dict[str, Round]:
    """So many kills on SQLite, and as many on Postgres where there is one."""
    made: dict[str, Round] = {"kills": partial(series, number)}
    if has_postgres():
        made["kills-postgres"] = partial(_on_postgres, number)
    return made


def _on_postgres(number: int, luck: random.Random) -> Findings:
    with postgres_url() as url:
        return series(number, luck, url)


def series(number: int, luck: random.Random, database_url: str = "") -> Findings:
    """Syncs of changing content, each killed; then one pass and one drain, and nothing is lost or twice."""
    found, folder = Findings(), Path(tempfile.mkdtemp(prefix="references-"))
    url = database_url or f"sqlite:///{folder}/ledger.db"
    service = open_service(folder, url, FakeScraper())
    try:
        service.ledger.migrate()
        lasts = _undisturbed(folder, url)
        for _ in range(number):
            _kill(folder, url, luck, lasts, found)
            if luck.random() < 0.2:
                _edit(service, found)
            if luck.random() < 0.5:  # the sweep comes while others are at work
                service.ledger.sweep(finished_runs=(), now=machine_clock() + timedelta(hours=1))
        worker = Worker(folder, url, "sync", str(REFERENCES), TEXTS[0], BATCH)
        worker.wait_until_ready()
        worker.begin()
        worker.answer()
        _heal(folder, url)
        _check(service, found)
    finally:
        service.ledger.close()
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _undisturbed(folder: Path, url: str) -> float:
    """How long a first sync takes."""
    worker = Worker(folder, url, "sync", str(REFERENCES), TEXTS[0], BATCH)
    worker.wait_until_ready()
    began = time.monotonic()
    worker.begin()
    worker.answer()
    return time.monotonic() - began


def _kill(folder: Path, url: str, luck: random.Random, lasts: float, found: Findings) -> None:
    words = ("drain",) if luck.random() < 0.15 else ("sync", str(REFERENCES), luck.choice(TEXTS), BATCH)
    worker = Worker(folder, url, *words)
    worker.wait_until_ready()
    worker.begin()
    killed = worker.kill_after(luck.uniform(0, 0.7 * lasts))
    found.count(kills=int(killed), too_late=int(not killed))


def _edit(service: ReferencesService, found: Findings) -> None:
    """A hand deletes half of what is stored: the next sync reads the source whole, whatever it says."""
    half = "SELECT * FROM refs.references WHERE hash(reference_id) % 2 = 0"
    rows = service.lake.query(half).cast(TABLE.schema)
    if rows.num_rows:
        service.lake.replace(TABLE.name, SOURCE, rows)
        found.count(edits=1)


def _heal(folder: Path, url: str) -> None:
    """What a daemon does within the next hours: the leases of the dead have ended, and so has their wait."""

    def later() -> datetime:
        return machine_clock() + timedelta(hours=3)

    service = open_service(folder, url, FakeScraper(), later)
    service.ledger.sweep(finished_runs=())
    service.ledger.close()
    service = open_service(folder, url, FakeScraper(), lambda: later() + timedelta(hours=3))
    reconcile(ReferencesReconciler(service))
    drain_handoffs(service, "run-1", 120)
    service.ledger.close()


def _check(service: ReferencesService, found: Findings) -> None:
    """For each reference: its content is handed over, and one job of just this content waits."""
    rows = service.lake.query("SELECT reference_id, payload_hash FROM refs.references").to_pylist()
    content = {row["reference_id"]: row["payload_hash"] for row in rows}
    table = ingestion_handoffs.c
    with service.ledger.engine.connect() as connection:
        query = select(table.reference_id, table.payload_hash, table.status, table.reason_code)
        handoffs = list(map(tuple, connection.execute(query)))
    if not found.counts.get("kills"):
        found.complaints.append("no kill came in time")
    if running := [run.id for run in service.store.find_runs(limit=1_000) if run.status == "running"]:
        found.complaints.append(f"{len(running)} killed scrapes still run: {running[:3]}")
    if len(content) != REFERENCES:
        found.complaints.append(f"{len(content)} references of {REFERENCES}")
    twice = [key for key, number in Counter(row[:2] for row in handoffs).items() if number > 1]
    if twice:
        found.complaints.append(f"{len(twice)} contents have two hand-offs: {twice[:3]}")
    if open_ones := [row for row in handoffs if row[2] != "completed"]:
        found.complaints.append(f"{len(open_ones)} hand-offs are not completed: {open_ones[:3]}")
    done = {row[:2] for row in handoffs if row[3] != SUPERSEDED_BY_NEWER}
    if lost := [row for row in content.items() if row not in done]:
        found.complaints.append(f"{len(lost)} contents were not handed over: {lost[:3]}")
    jobs = service.ledger.find("references.ingest", limit=None)
    per_reference = Counter(job.key for job in jobs)
    if wrong := [key for key, number in per_reference.items() if number != 1]:
        found.complaints.append(f"{len(wrong)} references have two jobs: {wrong[:3]}")
    asked = {(job.key.removeprefix("documents:"), job.fingerprint) for job in jobs}
    if missing := set(content.items()) - asked:
        found.complaints.append(f"{len(missing)} contents have no job: {sorted(missing)[:3]}")
    found.count(handoffs=len(handoffs), jobs=len(jobs))
