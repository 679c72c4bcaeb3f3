"""The references' part of the demo: a sync, what is free, a source that fails and heals, the story of one
reference."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.error import PerennialError
from orchestration.cli.output import say, table
from orchestration.cli.references import show_story
from orchestration.cli.runner import runner
from orchestration.domain import Demonstrated
from orchestration.domains.references import open_references, references_settings
from services.references.explain import explain
from services.references.findings import find_problems
from services.references.reconcile import ReferencesReconciler
from services.references.sources import SANDBOX
from services.references.sync import SyncOutcome, sync
from services.run_until_idle import run_until_idle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestration.settings import Settings
    from services.references.service import ReferencesService

SOURCE = "atlas"


def show_references(settings: Settings, *, shown: bool) -> Demonstrated:
    """Scrape the sandbox's sources; see one fail, heal and change; read the story of one reference."""
    if references_settings(settings).references_sources != SANDBOX:
        say("9. nothing about references: a sources file is set, and the demo reads the sandbox only")
        return Demonstrated(True, {"references": {"left_out": "a sources file is set"}})
    references = open_references(settings, write=True)
    say(f"9. references of {', '.join(references.scrapers)}: scraped, handed over, ingested")
    _heal(settings, references)
    say(f"10. {SOURCE} again: an unchanged source costs one request")
    again = _synced(references)
    say(f"11. {SOURCE} gives half a page: an error, and nothing is taken for whole")
    with _fault(settings, "half_page", times=1):
        refused = _refused(references)
    say(f"12. {SOURCE} is whole again, and a third of it changed: only that is handed over")
    with _fault(settings, "changed"):
        changed = _synced(references)
    _heal(settings, references)
    rows = [_counts(references, name) for name in references.scrapers]
    newest = _newest(references)
    if shown:
        table(["source", "references", "documents"], [list(row.values()) for row in rows])
        say(f"13. the story of {newest}")
        show_story(explain(references, newest))
    unhealthy = [found for found in find_problems(references) if found.health == "broken"]
    ok = not unhealthy and refused == "scrape_incomplete" and changed.handoff_completed_count > 0
    answers = {"again": again.as_json(), "refused": refused, "changed": changed.as_json()}
    return Demonstrated(ok, {"references": {"sources": rows, **answers}})


def _heal(settings: Settings, references: ReferencesService) -> None:
    with runner(settings) as run:
        run_until_idle(ReferencesReconciler(references), run)


def _synced(references: ReferencesService) -> SyncOutcome:
    outcome = sync(references, SOURCE, by="demo")
    say(
        f"   {outcome.stored:,} new, {outcome.changed:,} changed, {outcome.unchanged:,} unchanged; "
        f"{outcome.handoff_completed_count:,} handed over"
    )
    return outcome


def _refused(references: ReferencesService) -> str:
    """Return the reason code with which a scrape of the whole source fails."""
    try:
        sync(references, SOURCE, by="demo", full=True)
    except PerennialError as error:
        say(f"   {error.reason_code}: {error.message}")
        return error.reason_code
    return ""


@contextmanager
def _fault(settings: Settings, kind: str, **values: Any) -> Iterator[None]:
    """The source fails in this way until the end."""
    import requests

    from resources.sandbox.process import ensure_sandbox

    with requests.Session() as session:
        session.trust_env = False
        faults = f"{ensure_sandbox(settings.home)}/_sandbox/faults"
        rule = {"api": SOURCE, "kind": kind, **values}
        session.post(faults, json=rule, timeout=10).raise_for_status()
        try:
            yield
        finally:
            session.delete(faults, params={"api": SOURCE, "kind": kind}, timeout=10).raise_for_status()


def _counts(references: ReferencesService, source: str) -> dict[str, Any]:
    return {
        "source": source,
        "references": references.lake.version(REFERENCES.name, source).rows,
        "documents": references.lake.version(DOCUMENTS.name, source).rows,
    }


def _newest(references: ReferencesService) -> str:
    query = f"SELECT max(reference_id) FROM {REFERENCES.name} WHERE source = $source"
    return str(references.lake.query(query, params={"source": SOURCE}).column(0)[0].as_py())
