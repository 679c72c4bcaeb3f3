"""Carbon commands that do work here: what is due, what a feed changed, what a person requests."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from domain.shared.error import InvalidInput
from domain.shared.years import YEARS
from orchestration.cli.carbon_drive import drive, drive_inbox
from orchestration.cli.output import Json, answer, document, say
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

Year = Annotated[int, typer.Argument(help="The year", min=YEARS[0], max=YEARS[-1])]


def heal(json: Json = False) -> None:
    """Import, calculate and sum whatever is due, files in the inbox too, in this process."""
    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    drive_inbox(settings, carbon)
    ended = drive(settings, carbon)
    if json:
        document({"ok": ended, "plan": [v.key for v in carbon.plan().due]})
    raise typer.Exit(0 if ended else 1)


def withdraw(
    data_entry_type: Annotated[str, typer.Argument(help="The data entry type")],
    year: Year,
    institution: Annotated[str, typer.Option("--institution", help="Whose data.")] = "main",
    source: Annotated[
        str, typer.Option("--source", help="Of an application that is no more: the source of its rows.")
    ] = "csv",
    wait: Annotated[bool, typer.Option("--wait", help="Do it here, with all that follows.")] = False,
    json: Json = False,
) -> None:
    """Withdraw the uploaded data of a type and year. Its files stay known; entries of applications stay."""
    from services.carbon.upload import scope_of, upload_nothing
    from services.carbon.uploaded_file import File

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    name = f"withdrawal of {data_entry_type} {year}"
    file = File("data", name, b"", getpass.getuser(), institution, source, year, data_entry_type)
    if source in carbon.feeds or carbon.store.uploads.newest_of(scope_of(file)) is None:
        raise InvalidInput(f"no data of {data_entry_type} {year} of {institution!r} were uploaded")
    receipt = upload_nothing(carbon, file)
    ended = drive(settings, carbon) if wait else True
    if json:
        document({"ok": ended, **receipt.as_json()})
    else:
        done = "was withdrawn already" if receipt.known else f"is withdrawn; upload {receipt.upload.id}"
        answer(f"{data_entry_type} {year} of {institution} {done}")
    raise typer.Exit(0 if ended else 1)


def reindex(
    wait: Annotated[bool, typer.Option("--wait", help="Do it here, with all that follows.")] = False,
    json: Json = False,
) -> None:
    """Index the staged uploads that the ledger lacks: it was lost, or restored from a backup."""
    from services.carbon import reindex as staged

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    added = staged.reindex(carbon.staging, carbon.store)
    for one in () if json else added:
        answer(f"upload {one.id}: {one}")
    ended = drive(settings, carbon) if wait else True
    if json:
        document({"ok": ended, "uploads": [{"upload": u.id, "pipeline": u.pipeline_id} for u in added]})
    else:
        answer(f"{len(added):,} uploads indexed")
    raise typer.Exit(0 if ended else 1)


def pull(json: Json = False) -> None:
    """Poll the feeds of other applications now, and do what follows."""
    from services.carbon.feeds import poll_feeds

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    if not carbon.feeds:
        raise InvalidInput(
            "no application is set", remedy="set PERENNIAL_CARBON_APP_URL or PERENNIAL_CARBON_API_URL"
        )
    polls = poll_feeds(carbon, {})
    for poll in () if json else polls:
        answer(poll.summary)
        if poll.error and poll.error.remedy:
            say(f"remedy: {poll.error.remedy}")
    ended = drive(settings, carbon) and not any(poll.error for poll in polls)
    if json:
        applications = [
            {"origin": p.origin, "changes": p.changes, "error": p.error.message if p.error else None}
            for p in polls
        ]
        document({"ok": ended, "applications": applications, "plan": [v.key for v in carbon.plan().due]})
    raise typer.Exit(0 if ended else 1)


def recalculate(
    year: Year,
    module: Annotated[
        list[str] | None, typer.Option("--module", help="Only this module; may be given again.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Do it here, with all that follows.")] = False,
    json: Json = False,
) -> None:
    """Calculate modules anew, whether that is due or not. What comes out the same changes nothing."""
    from services.carbon.requests import request_modules

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    names = module or [m.name for m in carbon.catalogue.modules]
    rows = request_modules(carbon, names, year)
    ended = drive(settings, carbon) if wait else True
    if json:
        document({"ok": ended, "jobs": [row.id for row in rows]})
    else:
        answer(f"asked for: {', '.join(names)} of {year}; work {', '.join(str(row.id) for row in rows)}")
        if not wait:
            say("a running daemon does it; without one `perennial carbon heal` does")
    raise typer.Exit(0 if ended else 1)
