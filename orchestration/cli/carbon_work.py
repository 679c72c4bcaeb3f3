"""Carbon commands that change something: heal, fetch, pull, recalculate, withdraw, reindex, lock, unlock."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from domain.carbon.tables import year_of
from domain.shared.error import InvalidInput
from domain.shared.years import YEARS
from orchestration.cli.carbon_drive import drive, drive_inbox
from orchestration.cli.output import Json, answer, document, say
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from orchestration.settings import Settings
    from services.carbon.service import CarbonService

Year = Annotated[int, typer.Argument(help="The year", min=YEARS[0], max=YEARS[-1])]
AnyYear = Annotated[int, typer.Argument(help="The year", min=0, max=9999)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is kept.")]
Wait = Annotated[bool, typer.Option("--wait", help="Do it here, with all that follows.")]
Institution = Annotated[str, typer.Option("--institution", help="Whose data.")]


def heal(json: Json = False) -> None:
    """Import, calculate and sum whatever is due, files in the inbox too, in this process."""
    settings, carbon = _opened()
    drive_inbox(settings, carbon)
    healthy = drive(settings, carbon)
    _finish(healthy, json, due=_due(carbon))


def fetch(json: Json = False) -> None:
    """Poll the feeds of other applications now, and do what follows."""
    from services.carbon.feeds import poll_feeds

    settings, carbon = _opened()
    if not carbon.feeds:
        raise InvalidInput(
            "no application is set", remedy="set PERENNIAL_CARBON_APP_URL or PERENNIAL_CARBON_API_URL"
        )
    polls = poll_feeds(carbon)
    for poll in () if json else polls:
        answer(poll.summary)
        if poll.error and poll.error.remedy:
            say(f"remedy: {poll.error.remedy}")
    healthy = drive(settings, carbon) and not any(poll.error for poll in polls)
    applications = [
        {"origin": p.origin, "changes": p.changes, "error": p.error.message if p.error else None}
        for p in polls
    ]
    _finish(healthy, json, applications=applications, due=_due(carbon))


def pull(
    kind: Annotated[Literal["units", "factors", "entries"], typer.Argument(help="What to read.")],
    year: Annotated[
        int | None, typer.Argument(help="The year; without it all that applications listed.", min=0, max=9999)
    ] = None,
    data_entry_type: Annotated[
        str | None, typer.Argument(metavar="[TYPE]", help="The data entry type, of factors and entries.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take units and factors even with less than half of their rows.")
    ] = False,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Read units, factors or entries of other applications again, whether they changed or not."""
    from services.carbon.pulls import request_pull

    settings, carbon = _opened()
    requested = request_pull(carbon, kind, year, data_entry_type, may_shrink=replace)
    healthy = drive(settings, carbon) if wait else True
    if not json:
        keys, jobs = (
            ", ".join(row.key for row in requested.jobs),
            ", ".join(str(r.id) for r in requested.jobs),
        )
        answer(f"requested: {keys}; work {jobs}, pipeline {requested.pipeline_id}")
        if not wait:
            say("a running daemon does it; without one `perennial carbon heal` does")
    _finish(healthy, json, jobs=[row.id for row in requested.jobs], pipeline=requested.pipeline_id)


def recalculate(
    year: Year,
    module: Annotated[
        list[str] | None, typer.Option("--module", help="Only this module; may be given again.")
    ] = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Calculate modules anew, whether that is due or not. What comes out the same changes nothing."""
    from services.carbon.requests import ALL, request_recalculation

    settings, carbon = _opened()
    names = [carbon.catalogue.module(name).name for name in module or ()] or [ALL]
    requested = request_recalculation(carbon, year, names)
    jobs = [row.id for row in requested.jobs]
    healthy = drive(settings, carbon) if wait else True
    if not json:
        answer(f"requested: {', '.join(names)} of {year}; work {', '.join(map(str, jobs))}")
        if not wait:
            say("a running daemon does it; without one `perennial carbon heal` does")
    _finish(healthy, json, jobs=jobs, pipeline=requested.pipeline_id)


def withdraw(
    data_entry_type: Annotated[str, typer.Argument(help="The data entry type")],
    year: Year,
    institution: Institution = "main",
    source: Annotated[
        str, typer.Option("--source", help="Of an application that is no more: the source of its rows.")
    ] = "csv",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Withdraw the uploaded data of a type and year. Its files stay known; entries of applications stay."""
    from services.carbon.upload import scope_of, upload_nothing
    from services.carbon.uploaded_file import File

    settings, carbon = _opened()
    name = f"withdrawal of {data_entry_type} {year}"
    file = File("data", name, b"", getpass.getuser(), institution, source, year, data_entry_type)
    if source in carbon.feeds or carbon.store.uploads.newest_of(scope_of(file)) is None:
        raise InvalidInput(f"no data of {data_entry_type} {year} of {institution!r} were uploaded")
    receipt = upload_nothing(carbon, file)
    healthy = drive(settings, carbon) if wait else True
    if not json:
        done = "was withdrawn already" if receipt.known else f"is withdrawn; upload {receipt.upload.id}"
        answer(f"{data_entry_type} {year} of {institution} {done}")
    _finish(healthy, json, **receipt.as_json())


def reindex(wait: Wait = False, json: Json = False) -> None:
    """Index the staged uploads that the ledger lacks: it was lost, or restored from a backup."""
    from services.carbon import reindex as staged

    settings, carbon = _opened()
    added = staged.reindex(carbon.staging, carbon.store)
    healthy = drive(settings, carbon) if wait else True
    if not json:
        answer("\n".join([*(f"upload {one.id}: {one}" for one in added), f"{len(added):,} uploads indexed"]))
    _finish(healthy, json, uploads=[{"upload": u.id, "pipeline": u.pipeline_id} for u in added])


def lock(year: AnyYear, reason: Reason = "", json: Json = False) -> None:
    """Lock a published year: nothing may change it."""
    from services.carbon.report import report_of

    _, carbon = _opened()
    # A year without a report was not published: more likely the year is mistyped.
    found = None if year in carbon.store.year_locks.held() else report_of(carbon, year)
    notes = [*found.gaps, *found.notes] if found else []
    made = carbon.lock_year(year, getpass.getuser(), reason)
    if json:
        details = {"at": made.locked_at, "by": made.locked_by, "reason": made.reason, "notes": notes}
        document({"year": year, "locked": True, **details})
        return
    answer(f"{year} is locked: {made.reason}")
    for note in notes:
        say(f"warning: {note}")


def unlock(year: AnyYear, reason: Reason = "", json: Json = False) -> None:
    """Unlock a year; whatever became due meanwhile is then done."""
    _, carbon = _opened()
    carbon.store.year_locks.unlock(year, getpass.getuser(), reason)
    due = [v.key for v in carbon.plan().due if year_of(v.partition) == year]
    if json:
        document({"year": year, "locked": False, "by": getpass.getuser(), "reason": reason, "due": due})
        return
    answer(f"{year} is unlocked" + (f"; due: {', '.join(due)}" if due else ""))


COMMANDS = (heal, fetch, pull, recalculate, withdraw, reindex, lock, unlock)


def _opened() -> tuple[Settings, CarbonService]:
    settings = load_settings()
    return settings, open_carbon(settings, write=True)


def _due(carbon: CarbonService) -> list[str]:
    return [v.key for v in carbon.plan().due]


def _finish(healthy: bool, json: bool, **found: Any) -> None:
    """Print the document that was asked for, and exit with the outcome."""
    if json:
        document({"ok": healthy, **found})
    raise typer.Exit(0 if healthy else 1)
