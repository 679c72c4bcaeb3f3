"""Hand-offs: a pass and `status` over a thousand and over a million finished ones, and how fast 10,000 drain.

A home with as many references in the lake, finished hand-offs, and finished work of both kinds.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks.ledger import new_database
from benchmarks.orchestration import price_of_a_run
from domain.references.handoffs import Content
from domain.references.jobs import HANDOFF, INGEST, KINDS
from domain.references.tables import REFERENCES, TABLES
from domain.shared.clock import machine_clock
from domain.shared.work import WorkRequest
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from resources.ledger.provenance import PartitionRecord
from resources.ledger.schema import work
from resources.scraping.reference import NOTHING_READ, Checkpoint, Scrape
from services.reconcile import reconcile
from services.references.findings import find_problems
from services.references.handoff import drain_handoffs
from services.references.handoff_store import ingestion_handoffs
from services.references.handoff_work import enqueue_handoffs
from services.references.reconcile import ReferencesReconciler
from services.references.service import ReferencesService
from tests.postgres import running_server

SOURCE = "bench"
SIZES = (1_000, 1_000_000)
TURNS = 15
DRAINED = 10_000


class Nothing:
    """A source that never changes."""

    source = SOURCE

    def fingerprint(self) -> str:
        return SOURCE

    def fetch(self, since: Checkpoint, full: bool) -> Scrape:  # noqa: ARG002
        return Scrape(None, since)


def run() -> dict[str, float]:
    ratios: dict[str, float] = {}
    a_run = price_of_a_run()
    print(f"a run that does nothing takes {a_run:.3f} s")
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        for kind in ("sqlite", "postgres"):
            homes = []
            for size in SIZES:
                home = Path(folder) / f"{kind}-{size}"
                home.mkdir()
                url = f"sqlite:///{home}/ledger.db"
                if kind == "postgres":
                    url = new_database(server, f"references_{size}")
                homes.append(_home(home, url, size))
            ratios |= _looks(kind, *homes)
            ratios |= _drained(kind, homes[0], a_run)
            for service in homes:
                service.ledger.close()
    return ratios


def _looks(kind: str, small: ReferencesService, large: ReferencesService) -> dict[str, float]:
    """A pass and the findings of `status`, in turns."""
    looks: dict[str, Callable[[ReferencesService], object]] = {
        "pass": lambda service: reconcile(ReferencesReconciler(service)),
        "status": find_problems,
    }
    ratios: dict[str, float] = {}
    for name, look in looks.items():
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(TURNS):
            for service, some in zip((small, large), times, strict=True):
                began = time.perf_counter()
                look(service)
                some.append(time.perf_counter() - began)
        took = [statistics.median(some) for some in times]
        print(
            f"{kind}: {name} {took[0] * 1e3:.1f} ms over {SIZES[0]:,}, {took[1] * 1e3:.1f} over {SIZES[1]:,}"
        )
        ratios[f"references_{name}_{kind}_million_over_thousand"] = took[1] / took[0]
    return ratios


def _drained(kind: str, service: ReferencesService, a_run: float) -> dict[str, float]:
    """Seconds of handing over so many contents in one run, against a run for each."""
    contents = [Content(f"{SOURCE}:new{n}", f"hash{n}", SOURCE, "run") for n in range(DRAINED)]
    enqueue_handoffs(service, service.store.handoffs.put(contents, "run"))
    began = time.perf_counter()
    done = drain_handoffs(service, "bench", 600)
    took = time.perf_counter() - began
    assert sum(done.values()) == DRAINED, done
    each = a_run * DRAINED
    speed = f"{took:.1f} s in one run ({DRAINED / took:,.0f}/s), {each:,.0f} s in a run each"
    print(f"{kind}: {DRAINED:,} hand-offs, {speed}")
    return {f"references_run_each_over_drain_{kind}": each / took}


def _home(folder: Path, url: str, size: int) -> ReferencesService:
    lake = Lake(
        catalog_url=f"sqlite:///{folder}/catalog.db",
        warehouse=f"file://{folder}/warehouse",
        home=folder,
        tables=TABLES,
    )
    ledger = Ledger.open(url, kinds=KINDS, clock=machine_clock)
    ledger.migrate()
    service = ReferencesService(lake, ledger, {SOURCE: Nothing()})
    version = lake.replace(REFERENCES.name, SOURCE, _references(size)).versions[SOURCE]
    ledger.provenance.record([PartitionRecord(REFERENCES.name, SOURCE, version.rows, version.digest)])
    service.store.begin("run", SOURCE, "bench")
    service.store.finish("run", SOURCE, {}, NOTHING_READ)
    service.store.note_handed(SOURCE, str(version))
    service.store.note_ingested(SOURCE, service.observe().sources[SOURCE].documents_compared)
    _finish(service, size)
    return service


def _references(size: int) -> pa.Table:
    now = machine_clock()
    rows = {name: pa.nulls(size, REFERENCES.schema.field(name).type) for name in REFERENCES.schema.names}
    names = pa.array([f"{SOURCE}:{n}" for n in range(size)])
    same = {"source": SOURCE, "payload": "{}", "scrape_run_id": "run", "seen_at": now}
    rows |= {name: pa.array([value] * size, rows[name].type) for name, value in same.items()}
    return pa.table(rows | {"reference_id": names, "payload_hash": names}, schema=REFERENCES.schema)


def _finish(service: ReferencesService, size: int) -> None:
    """Finished hand-offs and work, put there in a few statements: a million honest ones take too long."""
    ledger = service.ledger
    service.store.handoffs.put([Content(f"{SOURCE}:seed", "seed", SOURCE, "run")], "run")
    for kind in (HANDOFF, INGEST):
        ledger.enqueue([WorkRequest(kind, "seed", "seed", tenant=SOURCE)])
        with ledger.lease_due(kind, "seed", 1):
            pass
    postgres = ledger.engine.dialect.name == "postgresql"
    counting = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {size})"
    numbers = f"SELECT generate_series(1, {size}) AS i" if postgres else f"{counting} SELECT i FROM n"
    with ledger.engine.begin() as connection:
        run = connection.exec_driver_sql
        run("UPDATE ingestion_handoffs SET status = 'completed', reason_code = 'ingestion_job_queued'")
        for table, key, where in (
            (work, "key", "key = 'seed'"),
            (ingestion_handoffs, "reference_id", "reference_id = 'bench:seed'"),
        ):
            columns = ", ".join(c.name for c in table.columns if c.name not in ("id", key))
            run(
                f"INSERT INTO {table.name} ({columns}, {key}) SELECT {columns}, 'old ' || numbers.i "
                f"FROM {table.name}, ({numbers}) AS numbers WHERE {where}"
            )
        run("ANALYZE")
