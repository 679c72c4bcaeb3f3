"""What must hold of a home's carbon after chaos, as a list of complaints: empty is good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from domain.carbon.jobs import AGGREGATION, RECALCULATION, UNIT_SYNC
from domain.carbon.tables import EMISSIONS, FACTOR_VERSIONS, FACTORS, REPORTS, TABLES, UNITS, name_of, year_of
from domain.shared.work import Work
from services.carbon.pipelines import list_pipelines
from services.carbon.service import CarbonService
from tests.chaos.carbon_files import YEARS, Sheet
from tests.chaos.carbon_truth import true_report
from tests.chaos.market_checks import differences, duplicate_keys, without_reason
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

    A process that died may have aggregated without recording it: `deaths` aggregations may be needless.
    """
    return [
        *wrong_reports(carbon, uploaded),
        *differences(carbon.lake, clean.lake, [t.name for t in TABLES], without=OF_THEIR_TIME),
        *duplicate_keys(carbon.lake, "carbon."),
        *_unfinished(carbon),
        *without_reason(carbon.ledger),
        *_pipelines(carbon, deaths),
        *needless_aggregations(carbon, deaths),
    ]


def sheets_in_order(carbon: CarbonService, sheets: Sequence[Sheet]) -> list[Sheet]:
    """These sheets as often and in the order in which they were uploaded."""
    known = {sheet.sha256: sheet for sheet in sheets}
    return [known[u.sha256] for u in reversed(carbon.store.uploads.find(accepted=True))]


def wrong_reports(carbon: CarbonService, uploaded: Sequence[Sheet]) -> Iterator[str]:
    for year in YEARS:
        found = {
            (row["unit_id"], row["module"], row["scope"]): Line(**{n: row[n] for n in Line.__annotations__})
            for row in carbon.rows(REPORTS, [str(year)]).to_pylist()
        }
        expected = true_report(uploaded, year)
        wrong = sorted(p for p in found.keys() | expected.keys() if found.get(p) != expected.get(p))
        if wrong:
            line = wrong[0]
            yield (
                f"the report of {year} is wrong in {len(wrong)} of {len(expected)} lines: "
                f"{line} is {found.get(line)}, by its files {expected.get(line)}"
            )


def _unfinished(carbon: CarbonService) -> Iterator[str]:
    for row in carbon.ledger.find(status=("running", "queued", "deferred"), limit=None):
        yield f"work {row.id} {row.key} is {row.status} after healing ({row.reason_code}: {row.error})"
    for verdict in carbon.plan().verdicts:
        if verdict.state != "healthy":
            yield f"{verdict.key} is {verdict.state} after healing: {verdict.reason}"


def _pipelines(carbon: CarbonService, deaths: int) -> Iterator[str]:
    """Every pipeline has ended; one that failed says why, and a process had died."""
    for one in list_pipelines(carbon, limit=10_000):
        name, status = f"the pipeline of {one.upload.name} ({one.upload.pipeline_id})", one.state.status
        if status == "SUCCESS":
            continue
        explained = any(w.status in ("failed", "cancelled") and w.reason_code for w in one.work)
        if status not in ("PARTIAL", "FAILED") or not deaths or not explained:
            yield f"{name} is {status}: {[(w.key, w.status, w.reason_code) for w in one.work]}"


# How often a year was aggregated


def needless_aggregations(carbon: CarbonService, deaths: int = 0) -> Iterator[str]:
    """Aggregations for which nothing had been calculated since the one before began."""
    done = carbon.ledger.find(status="completed", limit=None)
    inputs = [row for row in done if row.kind in (RECALCULATION, UNIT_SYNC)]
    needless: Counter[str] = Counter()
    for key in {row.key for row in done if row.kind == AGGREGATION}:
        relevant = [row for row in inputs if _is_input(carbon, row, key)]
        for before, later in pairwise(sorted((row for row in done if row.key == key), key=_begin)):
            if not any(_end(r) > _begin(before) and _begin(r) < _end(later) for r in relevant):
                needless[key] += 1
    if needless.total() > deaths:
        yield f"aggregated again although nothing was calculated in between: {dict(needless)}"


def excess_aggregations(carbon: CarbonService, year: int, since: int) -> Iterator[str]:
    """Aggregations of the year, after the work number `since`, beyond one, and one for each during which a
    calculation was recorded or a file came in whose calculation followed."""
    done = [row for row in carbon.ledger.find(status="completed", limit=None) if row.id > since]
    runs = [row for row in done if row.key == f"{REPORTS.table}:{year}"]
    landed = [
        _end(r)
        for r in done
        if r.kind in (RECALCULATION, UNIT_SYNC) and year_of(r.key.split(":", 1)[1]) == year
    ]
    landed += [u.moment for u in carbon.store.uploads.find(accepted=True) if year in u.years]
    disturbed = [s for s in runs if any(_begin(s) < moment < _end(s) for moment in landed)]
    if len(runs) > 1 + len(disturbed):
        spans = [f"{_begin(s):%M:%S.%f}-{_end(s):%M:%S.%f}" for s in runs]
        moments = [f"{moment:%M:%S.%f}" for moment in sorted(landed)]
        yield f"{year} was aggregated {len(runs)} times ({spans}), {len(disturbed)} disturbed by {moments}"


def newest_work(carbon: CarbonService) -> int:
    return max((row.id for row in carbon.ledger.find(limit=1)), default=0)


def _begin(row: Work) -> datetime:
    return row.started_at or NEVER


def _end(row: Work) -> datetime:
    return row.finished_at or NEVER


def _is_input(carbon: CarbonService, row: Work, key: str) -> bool:
    """Whether this calculation, or these units, are in that aggregation."""
    table, partition = key.split(":", 1)
    source, of = row.key.split(":", 1)
    if year_of(partition) != year_of(of):
        return False
    if table == REPORTS.table:
        return True
    module = carbon.catalogue.type(name_of(of)).module if source == EMISSIONS.table else ""
    return module == name_of(partition)
