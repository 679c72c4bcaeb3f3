"""The references' part of the demo: sources are scraped, and a source that did not change costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from domain.references.tables import DOCUMENTS, REFERENCES
from orchestration.cli.output import say, table
from orchestration.cli.references import show_story
from orchestration.cli.runner import runner
from orchestration.domain import Demonstrated
from orchestration.domains.references import open_references, references_settings
from services.references.explain import explain
from services.references.findings import find_problems
from services.references.reconcile import ReferencesReconciler
from services.references.sources import SANDBOX
from services.references.sync import sync
from services.run_until_idle import run_until_idle

if TYPE_CHECKING:
    from orchestration.settings import Settings
    from services.references.service import ReferencesService


def show_references(settings: Settings, *, shown: bool) -> Demonstrated:
    """Scrape the sandbox's sources, scrape one again, and show the story of one reference."""
    if references_settings(settings).references_sources != SANDBOX:
        say("9. nothing about references: a sources file is set, and the demo reads the sandbox only")
        return Demonstrated(True, {"references": {"left_out": "a sources file is set"}})
    references = open_references(settings, write=True)
    say(f"9. references of {', '.join(references.scrapers)}: scraped, handed over, ingested")
    with runner(settings) as run:
        run_until_idle(ReferencesReconciler(references), run)
    source = next(iter(references.scrapers))
    say(f"10. {source} again: what did not change is handed over no second time")
    again = sync(references, source, by="demo")
    rows = [_counts(references, name) for name in references.scrapers]
    if shown:
        table(["source", "references", "documents"], [list(row.values()) for row in rows])
        show_story(explain(references, _first(references, source)))
    ok = not [f for f in find_problems(references) if f.health == "broken"]
    return Demonstrated(ok, {"references": {"sources": rows, "again": again.as_json()}})


def _counts(references: ReferencesService, source: str) -> dict[str, Any]:
    return {
        "source": source,
        "references": references.lake.version(REFERENCES.name, source).rows,
        "documents": references.lake.version(DOCUMENTS.name, source).rows,
    }


def _first(references: ReferencesService, source: str) -> str:
    query = f"SELECT min(reference_id) FROM {REFERENCES.name} WHERE source = $source"
    return str(references.lake.query(query, params={"source": source}).column(0)[0].as_py())
