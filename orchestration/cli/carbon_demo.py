"""Carbon's part of the demo: a university's year from its files to its report, then newer factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain.carbon.tables import EMISSIONS, name_of
from orchestration.cli.carbon import foresee
from orchestration.cli.carbon_drive import drive_with
from orchestration.cli.carbon_reports import show_difference, show_report, write_page
from orchestration.cli.output import answer, say
from orchestration.cli.runner import runner
from orchestration.domain import Demonstrated
from orchestration.domains.carbon import open_carbon

if TYPE_CHECKING:
    from orchestration.cli.runner import Runner
    from orchestration.settings import Settings
    from sandbox.carbon.institution import Written
    from services.carbon.service import CarbonService
    from services.carbon.uploaded_file import File

YEAR = 2025
SCALE = 1.0
"""Of the sample's entries: 1 is about 67,000 in a year."""
BY = "demo"


def show_carbon(settings: Settings, *, shown: bool) -> Demonstrated:
    """Import the files, then newer factors, then the old ones again; a second demo only the factors."""
    from sandbox.carbon.institution import write, write_revision

    carbon = open_carbon(settings, write=True)
    if (why := _used_by_others(carbon)) is not None:
        say(f"5. nothing about carbon: {why}; see it with another PERENNIAL_HOME")
        return Demonstrated(True, {"carbon": {"left_out": why}})
    folder = settings.home / "demo"
    files, revision = write(folder, SCALE, years=[YEAR]), write_revision(folder, YEAR)
    with runner(settings) as run:
        return _show(carbon, run, files, revision, shown=shown)


def _used_by_others(carbon: CarbonService) -> str | None:
    """Return why the year must not be changed by a demo, which imports factors for all of it."""
    if YEAR in carbon.store.year_locks.held():
        return f"{YEAR} is locked"
    for one in carbon.store.uploads.find(accepted=True):
        if one.uploaded_by != BY and YEAR in one.years:
            return f"{YEAR} has files of {one.uploaded_by}"
    return None


def _show(
    carbon: CarbonService, run: Runner, files: Sequence[Written], revision: Written, *, shown: bool
) -> Demonstrated:
    from services.carbon.report import difference, report_of

    folder = revision.path.parent
    rows = sum(one.rows for one in files if one.kind == "data")
    say(f"5. a university's {YEAR}: {len(files)} files with {rows:,} entries, in {folder}")
    known = [_upload(carbon, one) for one in files]
    say(f"   {known.count(False)} taken, {known.count(True)} known already")
    ok = not drive_with(run, carbon)
    before = report_of(carbon, YEAR)
    if shown:
        show_report(before)
    say(f"6. newer factors, {revision.path.name}: what if?")
    foreseen = foresee(carbon, _file(revision), shown=shown)["what_if"]["effects"]
    say("7. now for good: what they change is calculated, and nothing else")
    _upload(carbon, revision)
    runs_before = len(run.started)
    ok = not drive_with(run, carbon) and ok
    recalculated = [one for one in run.started[runs_before:] if EMISSIONS.table in one.tables]
    changes = difference(before, report_of(carbon, YEAR))
    if shown:
        show_difference(changes)
    say("8. the factors as they were: every number is again what it was")
    [factors] = [one for one in files if one.kind == "factors"]
    _upload(carbon, factors)
    ok = not drive_with(run, carbon) and ok
    after = report_of(carbon, YEAR)
    written = write_page(carbon, folder / f"report-{YEAR}.html", YEAR)
    if shown:
        answer(f"the report to be sent on, or printed: {written['file']}")
    document = {
        "year": YEAR,
        "files": len(files),
        "entries": rows,
        "report": before.as_json(),
        "foreseen": foreseen,
        "recalculated": sorted({name_of(p) for one in recalculated for p in one.partitions}),
        "difference": changes,
        "page": written,
    }
    return Demonstrated(ok and list(before.rows) == list(after.rows), {"carbon": document})


def _upload(carbon: CarbonService, one: Written) -> bool:
    """Import the file; True if it was known already."""
    from services.carbon.upload import upload

    return upload(carbon, _file(one)).known


def _file(one: Written) -> File:
    from services.carbon.uploaded_file import File

    return File(
        kind=one.kind,
        name=one.path.name,
        content=one.path.read_bytes(),
        by=BY,
        data_entry_type=one.data_entry_type or None,
    )
