"""What must hold of a home's carbon after trouble, as a list of complaints: empty is good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from domain.carbon.jobs import AGGREGATION, RECALCULATION, UNIT_SYNC
from domain.carbon.tables import (
    EMISSIONS,
    FACTOR_VERSIONS,
    FACTORS,
    REPORTS,
    TABLES,
    UNITS,
)
from domain.carbon.verdict import year_of
from hunts.carbon_files import YEARS, Sheet
from hunts.carbon_truth import truth
from hunts.yardstick import content, doubled, without_reason
from resources.ledger.model import Work
from services.carbon.pipelines import chain, chains
from services.carbon.service import CarbonService
from tests.oracles.carbon import Line

OF_THEIR_TIME = {
    UNITS.name: ("last_seen_job_id",),
    FACTORS.name: ("last_seen_job_id",),
    FACTOR_VERSIONS.name: ("valid_from", "valid_to", "job_id"),
}
"""Columns that say when and by which work, and so differ between two homes of the same files."""

NEVER = datetime.max.replace(tzinfo=UTC)


def complaints(
    carbon: CarbonService, clean: CarbonService, uploaded: Sequence[Sheet], *, deaths: int
) -> list[str]:
    """After healing; `uploaded` in the order of their numbers, which is the order they count in.

    Whoever died may have summed what was not written down as summed: `deaths` sums may be needless.
    """
    return [
        *wrong_reports(carbon, uploaded),
        *_differences(carbon, clean),
        *doubled_keys(carbon),
        *_unfinished(carbon),
        *without_reason(carbon.ledger.engine),
        *_chains(carbon, deaths),
        *needless_sums(carbon, deaths),
    ]


def uploaded(carbon: CarbonService, sheets: Sequence[Sheet]) -> list[Sheet]:
    """These sheets as often and in the order in which they came in."""
    known = {sheet.sha256: sheet for sheet in sheets}
    return [known[u.sha256] for u in reversed(carbon.store.uploads.find(accepted=True))]


def wrong_reports(carbon: CarbonService, uploaded: Sequence[Sheet]) -> Iterator[str]:
    for year in YEARS:
        found = {
            (row["unit_id"], row["module"], row["scope"]): Line(**{n: row[n] for n in Line.__annotations__})
            for row in carbon.rows(REPORTS, [str(year)]).to_pylist()
        }
        expected = truth(uploaded, year)
        if found != expected:
            wrong = sorted(p for p in found.keys() | expected.keys() if found.get(p) != expected.get(p))
            place = wrong[0]
            yield (
                f"the report of {year} is wrong in {len(wrong)} of {len(expected)} lines: "
                f"{place} is {found.get(place)}, by its files {expected.get(place)}"
            )


def _differences(carbon: CarbonService, clean: CarbonService) -> Iterator[str]:
    for table in TABLES:
        left_out = OF_THEIR_TIME.get(table.name, ())
        ours, theirs = (content(c.lake, table.name).drop_columns(list(left_out)) for c in (carbon, clean))
        if not ours.equals(theirs):
            columns = [n for n in ours.column_names if not ours[n].equals(theirs[n])]
            yield (
                f"{table.name}: {ours.num_rows} rows, {theirs.num_rows} of the same files one after another; "
                f"differs in {columns}"
            )


def doubled_keys(carbon: CarbonService) -> Iterator[str]:
    return (told for told in doubled(carbon.lake) if told.startswith("carbon."))


def _unfinished(carbon: CarbonService) -> Iterator[str]:
    for row in carbon.ledger.find(status=("running", "queued", "deferred"), limit=None):
        yield f"work {row.id} {row.key} is {row.status} after healing ({row.reason_code}: {row.error})"
    for verdict in carbon.plan().verdicts:
        if verdict.state != "healthy":
            yield f"{verdict.key} is {verdict.state} after healing: {verdict.why}"


def _chains(carbon: CarbonService, deaths: int) -> Iterator[str]:
    """Every chain has come to its end; one that came to a bad one says why, and somebody died."""
    for told in chains(carbon, limit=10_000):
        name, status = f"the chain of {told['file']} ({told['pipeline']})", told["status"]
        if status == "SUCCESS":
            continue
        work = chain(carbon, told["pipeline"])["work"]
        if status not in ("PARTIAL", "FAILED") or not deaths:
            yield f"{name} is {status}: {[(w['key'], w['status'], w['reason']) for w in work]}"
        elif not any(w["status"] in ("failed", "cancelled") and w["reason"] for w in work):
            yield f"{name} is {status} and says no reason: {[(w['key'], w['status']) for w in work]}"


# How often it was summed


def needless_sums(carbon: CarbonService, deaths: int = 0) -> Iterator[str]:
    """Sums for which nothing had been calculated since the one before began."""
    done = _completed(carbon)
    inputs = [row for row in done if row.kind in (RECALCULATION, UNIT_SYNC)]
    needless: Counter[str] = Counter()
    for key in {row.key for row in done if row.kind == AGGREGATION}:
        sums = sorted((row for row in done if row.key == key), key=_begin)
        for before, after in pairwise(sums):
            meanwhile = [r for r in inputs if _matters(carbon, r, key) and _end(r) > _begin(before)]
            if not any(_begin(r) < _end(after) for r in meanwhile):
                needless[key] += 1
    if needless.total() > deaths:
        yield f"summed again although nothing was calculated in between: {dict(needless)}"


def sums_beyond_need(carbon: CarbonService, year: int, since: int) -> Iterator[str]:
    """The line itself: of the work after number `since`, no more sums of the year than one, and one for each
    during which a calculation was written down, or a file came in whose calculation followed."""
    done = [row for row in _completed(carbon) if row.id > since]
    sums = [row for row in done if row.key == f"{REPORTS.table}:{year}"]
    landed = [
        _end(r)
        for r in done
        if r.kind in (RECALCULATION, UNIT_SYNC) and year_of(r.key.split(":", 1)[1]) == year
    ]
    landed += [u.moment for u in carbon.store.uploads.find(accepted=True) if year in u.years]
    disturbed = [s for s in sums if any(_begin(s) < moment < _end(s) for moment in landed)]
    if len(sums) > 1 + len(disturbed):
        spans = [f"{_begin(s):%M:%S.%f}-{_end(s):%M:%S.%f}" for s in sums]
        told = [f"{moment:%M:%S.%f}" for moment in sorted(landed)]
        yield f"{year} was summed {len(sums)} times ({spans}), {len(disturbed)} disturbed by any of {told}"


def newest_work(carbon: CarbonService) -> int:
    return max((row.id for row in carbon.ledger.find(limit=1)), default=0)


def _completed(carbon: CarbonService) -> list[Work]:
    return carbon.ledger.find(status="completed", limit=None)


def _begin(row: Work) -> datetime:
    return row.started_at or NEVER


def _end(row: Work) -> datetime:
    return row.finished_at or NEVER


def _matters(carbon: CarbonService, row: Work, key: str) -> bool:
    """Whether this calculation, or these units, are in those sums."""
    table, partition = key.split(":", 1)
    source, of = row.key.split(":", 1)
    if year_of(partition) != year_of(of):
        return False
    if table == REPORTS.table:
        return True
    name = of.split("|", 1)[0]
    return source == EMISSIONS.table and carbon.catalogue.type(name).module == partition.split("|", 1)[0]
