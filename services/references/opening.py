"""Opens the references service from its settings: the one way for commands, runs and sensors."""

from __future__ import annotations

from datetime import timedelta

from domain.references.jobs import kinds
from domain.references.tables import TABLES
from services.references.service import ReferencesService, Rules
from services.references.settings import ReferencesSettings
from services.references.sources import open_sources
from services.storage import open_lake, open_ledger


def open_service(settings: ReferencesSettings, *, write: bool = False) -> ReferencesService:
    """`write` migrates the ledger."""
    sources = open_sources(settings)
    backoff = timedelta(seconds=settings.references_handoff_backoff_seconds)
    return ReferencesService(
        lake=open_lake(settings, TABLES),
        ledger=open_ledger(settings, kinds(settings.references_handoff_attempts, backoff), write=write),
        scrapers=sources,
        rules=Rules(lambda name: sources.scheduled[name].every, sources.fingerprint),
    )
