"""The references in a home of their own, with sources that tests write; Dagster executes their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from domain.references.jobs import INGEST
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.work import Work
from orchestration.cli.runner import runner
from orchestration.domains.references import open_references
from orchestration.instance import open_instance
from orchestration.settings import Settings
from resources.database.engine import writing
from services.reconcile import RunStart, reconcile
from services.references.reconcile import ReferencesReconciler
from services.references.service import ReferencesService
from services.references.sync import SyncOutcome, sync
from services.run_until_idle import run_until_idle
from tests.integration.services.references.shelf import Shelf
from tests.settings import make_settings

HERE = "tests.integration.services.references.shelf"


@dataclass
class ReferencesApp:
    home: Path
    database_url: str
    now: datetime
    sources: tuple[str, ...] = ("east", "west")

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.shelves = {name: Shelf(self.home / f"{name}.json") for name in self.sources}
        self.set_sources(*self.sources)

    def set_sources(self, *names: str) -> None:
        """Write the sources file: these of the shelves."""
        entries = [
            {"name": name, "kind": f"{HERE}:make", "url": str(self.shelves[name].path)} for name in names
        ]
        (self.home / "sources.yaml").write_text(yaml.safe_dump({"sources": entries}))
        self.__dict__.pop("service", None)

    @property
    def settings(self) -> Settings:
        return make_settings(
            home=self.home,
            database_url=self.database_url,
            domains=("references",),
            now=self.now,
            references_sources=str(self.home / "sources.yaml"),
            references_ingest=f"{HERE}:ingest",
        )

    @cached_property
    def service(self) -> ReferencesService:
        return open_references(self.settings, write=True)

    def heal(self) -> list[RunStart]:
        """Passes and runs until nothing is due; the runs that were started."""
        with runner(self.settings) as run:
            run_until_idle(ReferencesReconciler(self.service), run)
            return run.started

    def starts(self) -> tuple[RunStart, ...]:
        """The runs that one pass starts."""
        return reconcile(ReferencesReconciler(self.service)).starts

    def run(self, table: str, source: str | None = None) -> Any:
        """Materialize, as a click does."""
        with runner(self.settings) as run:
            return run.run([table], namespace="refs", partition=source)

    def sync(self, source: str) -> SyncOutcome:
        return sync(self.service, source, by="test")

    def store_without_handoffs(self, source: str) -> None:
        """What a crash leaves between storing references and handing them over."""
        branch = self.service.store.handoffs
        self.sync(source)
        with writing(branch.engine) as connection:
            for table in ("handoff_scrape", "ingestion_handoffs", "pipeline_member", "work"):
                connection.exec_driver_sql(f"DELETE FROM {table}")
        self.service.store.note_handed(source, "")

    def later(self, **of: float) -> None:
        self.now += timedelta(**of)
        del self.service

    # What there is

    def marks(self) -> tuple[str | None, ...]:
        """What every commit changes."""
        return self.service.lake.marks([REFERENCES.name, DOCUMENTS.name])

    def texts(self, table: str = DOCUMENTS.name) -> dict[str, str | None]:
        column = "text" if table == DOCUMENTS.name else "json_extract_string(payload, '$.text')"
        rows = self.service.lake.query(f"SELECT reference_id, {column} AS text FROM {table}").to_pylist()
        return {row["reference_id"]: row["text"] for row in rows}

    def references(self) -> dict[str, str | None]:
        return self.texts(REFERENCES.name)

    def jobs(self) -> dict[str, Work]:
        """By reference, its newest job."""
        rows = self.service.ledger.find(INGEST, limit=None)
        return {row.partition: row for row in reversed(rows)}

    def events(self, table: str) -> list[dg.EventLogEntry]:
        with open_instance(self.settings) as instance:
            found = instance.fetch_materializations(dg.AssetKey(["refs", table]), limit=100).records
            return [record.event_log_entry for record in found]


def in_all(source: str, names: Iterable[str]) -> set[str]:
    return {f"{source}:{name}" for name in names}


def of(source: str, texts: Mapping[str, str]) -> dict[str, str | None]:
    return {f"{source}:{name}": text for name, text in texts.items()}
