"""Opens the references service from its settings: the one way for commands, runs and sensors."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

from domain.references.documents import Ingest, clean
from domain.references.jobs import kinds
from domain.references.tables import TABLES
from domain.shared.error import InvalidInput
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
        ingest=_ingest(settings.references_ingest),
        rules=Rules(lambda name: sources.scheduled[name].every, sources.fingerprint),
    )


def _ingest(path: str) -> Ingest:
    """The function that a setting names as `module:function`; without one, the one that ships."""
    if not path:
        return clean
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _unusable(path, f"cannot be imported: {error}") from error
    if not callable(found):
        raise _unusable(path, "is no function")
    ingest: Ingest = found
    return ingest


def _unusable(path: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"PERENNIAL_REFERENCES_INGEST: {path} {why}",
        reason_code="ingest_function",
        remedy="name a function of an installed package as module:function, or unset it",
    )
