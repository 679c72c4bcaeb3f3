"""One of several processes that sync one source: it says `ready`, and begins at a line of input.

    worker.py FOLDER LEDGER_URL sync NUMBER TEXT [BATCH] | drain

`sync`: the source holds so many references, each with this text; with BATCH, so many are taken at once, and
the source says that nothing changed while its text is the same. What came of it goes to stdout as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from domain.references.jobs import KINDS, scrape_key
from domain.references.tables import TABLES
from domain.shared.clock import Clock, machine_clock
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from services.references.handoff import drain_handoffs
from services.references.handoff_work import BATCH
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.integration.services.references.fake_source import FakeScraper

SOURCE = "atlas"


def open_service(
    folder: Path, url: str, scraper: FakeScraper, clock: Clock = machine_clock
) -> ReferencesService:
    lake = Lake(
        catalog_url=f"sqlite:///{folder}/catalog.db",
        warehouse=f"file://{folder}/warehouse",
        home=folder,
        tables=TABLES,
    )
    ledger = Ledger.open(url, kinds=KINDS, clock=clock, machine_clock=clock)
    return ReferencesService(lake, ledger, {SOURCE: scraper})


def main(folder: str, url: str, what: str, *rest: str) -> None:
    scraper = FakeScraper(SOURCE)
    if what == "sync":
        scraper.fill(int(rest[0]), rest[1])
        scraper.etag = rest[1] if rest[2:] else ""
    service = open_service(Path(folder), url, scraper)
    service.lake.versions("refs.references", [SOURCE])
    service.store.states()
    print("ready", scrape_key(SOURCE), flush=True)
    sys.stdin.readline()
    if what == "drain":
        print(json.dumps(drain_handoffs(service, "worker:drain", 60)), flush=True)
    else:
        print(
            json.dumps(
                sync(service, SOURCE, by="test", batch_size=int(rest[2]) if rest[2:] else BATCH).as_json()
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
