"""Carbon commands that have work done here: what is due, what changed elsewhere, what is asked for."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from domain.shared.error import InvalidInput
from domain.shared.years import YEARS
from orchestration.cli.carbon_drive import drive, drive_dropped
from orchestration.cli.output import Json, answer, document, say
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from services.carbon.service import CarbonService
    from services.carbon.upload import File, FileKind

Year = Annotated[int, typer.Argument(help="The year", min=YEARS[0], max=YEARS[-1])]


def heal(json: Json = False) -> None:
    """Take in, calculate and sum whatever is due, files of the drop folder too, in this process."""
    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    drive_dropped(settings, carbon)
    ended = drive(settings, carbon)
    if json:
        document({"ok": ended, "plan": [v.key for v in carbon.plan().due]})
    raise typer.Exit(0 if ended else 1)


def withdraw(
    data_entry_type: Annotated[
        str, typer.Argument(help="The data entry type; or `units`, whose file the ledger has lost")
    ],
    year: Year,
    institution: Annotated[str, typer.Option("--institution", help="Whose data.")] = "main",
    source: Annotated[
        str, typer.Option("--source", help="Of an application that is no more: the source of its rows.")
    ] = "csv",
    wait: Annotated[bool, typer.Option("--wait", help="Do it here, with all that follows.")] = False,
    json: Json = False,
) -> None:
    """Take back the uploaded data of a type and year. Its files stay known; entries of applications stay."""
    from services.carbon.upload import File, upload_nothing

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    name = f"withdrawal of {data_entry_type} {year}"
    kind: FileKind = "units" if data_entry_type == "units" else "data"
    topic = None if kind == "units" else data_entry_type
    file = File(kind, name, b"", getpass.getuser(), institution, source, year, topic)
    if not _is_there_to_withdraw(carbon, file):
        raise InvalidInput(f"no data of {data_entry_type} {year} of {institution!r} were uploaded")
    receipt = upload_nothing(carbon, file)
    ended = drive(settings, carbon) if wait else True
    if json:
        document({"ok": ended, **receipt.as_json()})
    else:
        done = "was withdrawn already" if receipt.known else f"is withdrawn; upload {receipt.upload.id}"
        answer(f"{data_entry_type} {year} of {institution} {done}")
    raise typer.Exit(0 if ended else 1)


def _is_there_to_withdraw(carbon: CarbonService, file: File) -> bool:
    """Files that were uploaded, or rows that the ledger knows no file of. Another file takes the place of one
    of units, and what an application holds is withdrawn there."""
    from domain.carbon.held_back import unanswered
    from domain.carbon.tables import DATA_ENTRIES, UNITS
    from services.carbon.upload import place_of

    known = file.kind == "data" and file.source == "csv"
    if known and carbon.ledger.uploads.newest_of(place_of(file)) is not None:
        return True
    table, partition = UNITS.table, str(file.year)
    if file.kind == "data":
        table, partition = DATA_ENTRIES.table, f"{file.data_entry_type}|{file.year}"
    missing = unanswered(carbon.observe(), table, partition)
    return (file.institution, file.source) in missing and file.source not in carbon.feeds


def relist(
    forget: Annotated[
        str | None, typer.Option("--forget", help="Not this one: the upload of this pipeline is not wanted.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Do it here, with all that follows.")] = False,
    json: Json = False,
) -> None:
    """List uploads again that the ledger does not know any more: it was lost, or put back from a backup."""
    from services.carbon import unlisted

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    found: list[unlisted.Relisted] = []
    if forget is not None:
        answer(f"{unlisted.forget(carbon.staging, carbon.ledger, forget)} is not missed any more")
    else:
        found = unlisted.relist(carbon.staging, carbon.ledger)
    for one in () if json else found:
        answer(f"{one.upload}: {_RELISTED[one.outcome]}")
    ended = drive(settings, carbon) if wait else True
    well = ended and all(one.outcome in ("listed", "listed meanwhile") for one in found)
    if json:
        told = [{"pipeline": one.upload.pipeline_id, "outcome": one.outcome} for one in found]
        document({"ok": well, "uploads": told})
    raise typer.Exit(0 if well else 1)


_RELISTED = {
    "listed": "listed again",
    "listed meanwhile": "somebody else listed it again",
    "overtaken": "not listed: newer factors came since, and it would come after them; upload it again if it "
    "is to, or forget it",
    "lost": "not listed: its rows are lost; upload it again, or forget it",
}


def pull(json: Json = False) -> None:
    """Poll the applications beside us now, and do whatever follows."""
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
    from services.carbon.requests import ask_for_modules

    settings = load_settings()
    carbon = open_carbon(settings, write=True)
    names = module or [m.name for m in carbon.catalogue.modules]
    rows = ask_for_modules(carbon, names, year)
    ended = drive(settings, carbon) if wait else True
    if json:
        document({"ok": ended, "jobs": [row.id for row in rows]})
    else:
        answer(f"asked for: {', '.join(names)} of {year}; work {', '.join(str(row.id) for row in rows)}")
        if not wait:
            say("a running daemon does it; without one `perennial carbon heal` does")
    raise typer.Exit(0 if ended else 1)
