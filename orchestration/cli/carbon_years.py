"""Carbon commands that keep a published year as it is, and let it go."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from orchestration.cli.output import Json, answer, document, say
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings

Year = Annotated[int, typer.Argument(help="The year", min=0, max=9999)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is kept.")]


def lock(year: Year, reason: Reason = "", json: Json = False) -> None:
    """Lock a published year: nothing may change it."""
    from services.carbon.report import report_of

    carbon = open_carbon(load_settings(), write=True)
    # What has no report was not published: more likely the year is a slip of the hand.
    notes = () if year in carbon.store.year_locks.held() else report_of(carbon, year).notes
    made = carbon.lock_year(year, getpass.getuser(), reason)
    if json:
        details = {"at": made.locked_at, "by": made.locked_by, "reason": made.reason, "notes": list(notes)}
        document({"year": year, "locked": True, **details})
        return
    answer(f"{year} is locked: {made.reason}")
    for note in notes:
        say(f"warning: {note}")


def unlock(year: Year, reason: Reason = "", json: Json = False) -> None:
    """Unlock a year; whatever became due meanwhile is then done."""
    carbon = open_carbon(load_settings(), write=True)
    carbon.store.year_locks.unlock(year, getpass.getuser(), reason)
    due = [v.key for v in carbon.plan().due if v.year == year]
    if json:
        document({"year": year, "locked": False, "by": getpass.getuser(), "reason": reason, "due": due})
        return
    answer(f"{year} is unlocked" + (f"; due: {', '.join(due)}" if due else ""))
