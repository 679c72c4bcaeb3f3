"""Commands of the references: sync sources, see hand-offs, read the story of one reference."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.references.handoffs import STATUSES
from domain.shared.error import InvalidInput, PerennialError
from orchestration.cli.order import in_order
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.domains.references import open_references
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from services.references.explain import Story
    from services.references.service import ReferencesService
    from services.references.sync import SyncOutcome

app = typer.Typer(
    name="references",
    no_args_is_help=True,
    help="Scrape sources; see what became of every reference.",
    cls=in_order("sync", "handoffs", "explain", "heal"),
)
Source = Annotated[str | None, typer.Argument(help="A source, as the sources file names it.")]


@app.callback()
def references() -> None:
    """References are scraped from sources and handed to ingestion, once per content."""


@app.command("sync")
def sync_sources(
    source: Source = None,
    every: Annotated[bool, typer.Option("--all", help="Every source.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Read the source whole, though it says that nothing changed.")
    ] = False,
    json: Json = False,
) -> None:
    """Scrape a source now, and hand what is new to ingestion; a daemon, or `heal`, ingests it."""

    if every == (source is not None):
        raise InvalidInput("name one source, or --all", reason_code="unknown_source")
    service = open_references(load_settings(), write=True)
    if source is not None:
        service.require(source)
    answers: list[dict[str, Any]] = []
    for name in [source] if source is not None else list(service.scrapers):
        try:
            answers.append(_synced(service, name, full=full, shown=not json))
        except PerennialError as error:
            if source is not None:
                raise
            answers.append({"source": name, "error": error.message, "reason_code": error.reason_code})
            say(f"{name}: {error.message}")
    failed = [one["source"] for one in answers if "error" in one]
    if json:
        document({"ok": not failed, "syncs": answers} if every else answers[0])
    raise typer.Exit(1 if failed else 0)


def _synced(service: ReferencesService, source: str, *, full: bool, shown: bool) -> dict[str, Any]:
    from services.references.sync import sync

    outcome = sync(service, source, by=getpass.getuser(), full=full)
    if shown:
        answer(_line(outcome, full=full))
        for note in outcome.notes:
            say(f"   {note}")
    return outcome.as_json()


def _line(one: SyncOutcome, *, full: bool) -> str:
    if not (one.touched or one.notes or full):
        return f"{one.source}: not modified since the last scrape (scrape {one.scrape_run_id})"
    came = f"{one.source}: {one.stored:,} new, {one.changed:,} changed, {one.unchanged:,} unchanged"
    if not one.handoff_available:
        return f"{came}; hand-off is unavailable (scrape {one.scrape_run_id})"
    return (
        f"{came}; handed over {one.handoff_completed_count:,}, waiting {one.handoff_queued_count:,}, "
        f"failed {one.handoff_failed_count:,}, known {one.handoff_skipped_count:,} "
        f"(scrape {one.scrape_run_id})"
    )


@app.command()
def handoffs(
    source: Source = None,
    status: Annotated[str | None, typer.Option(help=", ".join(STATUSES))] = None,
    run: Annotated[str | None, typer.Option("--run", help="Only those that this scrape run met.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Hand-offs shown of each source.")] = 50,
    offset: Annotated[int, typer.Option(min=0)] = 0,
    json: Json = False,
) -> None:
    """List the hand-offs of a source, or of all: each content once, with its status and why."""
    from services.references.listing import list_handoffs

    service = open_references(load_settings())
    pages = {
        name: list_handoffs(service, name, status=status, scrape_run_id=run, limit=limit, offset=offset)
        for name in ([source] if source is not None else service.scrapers)
    }
    if json:
        document(pages[source].as_json() if source else {name: p.as_json() for name, p in pages.items()})
        return
    table(
        ["id", "reference", "status", "reason", "attempts", "work", "updated (UTC)", "error"],
        [
            (
                str(one.id),
                one.reference_id,
                one.status,
                one.reason_code,
                one.attempts,
                str(one.work_id or ""),
                one.updated_at,
                (one.error or "").partition("\n")[0],
            )
            for page in pages.values()
            for one in (item.handoff for item in page.items)
        ],
    )
    for name, page in pages.items():
        answer(f"{name}: {len(page.items):,} of {page.total:,}")


@app.command()
def explain(
    reference_id: Annotated[str, typer.Argument(metavar="ID", help="The reference: source:id.")],
    json: Json = False,
) -> None:
    """The whole story of one reference: scraped, handed over, tried, ingested."""
    from services.references.explain import explain

    story = explain(open_references(load_settings()), reference_id)
    if json:
        document(story.as_json())
    else:
        show_story(story)


def show_story(story: Story) -> None:
    table(
        ["at (UTC)", "what", "reason", "error"],
        [(one.at, one.text, one.reason_code, (one.error or "").partition("\n")[0]) for one in story.steps],
        title=story.reference_id,
    )
    for note in story.notes:
        answer(note)


@app.command()
def heal(json: Json = False) -> None:
    """Do everything that is due, here: scrape, hand over, ingest; also what waits for its next attempt."""
    from domain.shared.finding_groups import lines
    from orchestration.cli.runner import runner
    from services.references.findings import find_problems
    from services.references.reconcile import ReferencesReconciler
    from services.run_until_idle import run_until_idle

    settings = load_settings()
    service = open_references(settings, write=True)
    with runner(settings) as run:
        run_until_idle(ReferencesReconciler(service), run)
    found = find_problems(service)
    unhealthy = [f for f in found if f.health in ("broken", "stale", "healing")]
    if json:
        document({"ok": not unhealthy, "findings": [f.as_json() for f in found]})
    else:
        for line in lines(unhealthy):
            answer(line)
        if not unhealthy:
            answer("every source is scraped, handed over and ingested")
    raise typer.Exit(1 if unhealthy else 0)
