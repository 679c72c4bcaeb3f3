"""Ingesting uploads: a partition becomes what the newest uploads of its scopes hold. No Dagster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.factors import (
    NEWEST_UPLOADS,
    Origin,
    YearOfFactors,
    changed_types,
    digests,
    merged,
    newest_by_type,
)
from domain.carbon.intake.entries_file import recalculated
from domain.carbon.observed import Observed
from domain.carbon.pipelines import newest_pipelines
from domain.carbon.plan import entries_inputs, factors_inputs, units_inputs
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTOR_VERSIONS, FACTORS, UNITS, name_of, year_of
from domain.shared.compute import query
from domain.shared.packaged import packaged
from domain.shared.state import NOTHING, PartitionState
from domain.shared.table import Table
from resources.ledger.model import DONE_MEANWHILE
from services.carbon.figures import figures
from services.carbon.service import DIGESTS, CarbonService, NotIndexed
from services.partitions import Attempt, Built, NotBuilt, Notify, Request

if TYPE_CHECKING:
    from services.carbon.upload_store import Upload

NOTHING_TO_DO = "nothing_to_do"


def ingest_units(carbon: CarbonService, years: Sequence[str], this: Attempt, report: Notify) -> None:
    def build(request: Request) -> Built | NotBuilt:
        partition, year = request.partition, int(request.partition)
        seen = carbon.observe_intake({UNITS.name: [partition]})
        inputs = units_inputs(seen, year)
        if request.is_done(inputs, seen.state(UNITS.table, partition)):
            return NotBuilt(partition, skip=DONE_MEANWHILE)
        newest = _uploads(carbon, (u.id for u in seen.newest_uploads("units", "", year)))
        _refuse_not_indexed(seen)
        if not newest:
            return NotBuilt(partition, skip=NOTHING_TO_DO)
        jobs = carbon.store.uploads.ingested_by(request.work.id, [u.id for u in newest], year)
        rows = _shaped(UNITS, [_with_job(carbon, u, year, jobs[u.id]) for u in newest])
        return Built(
            partition,
            {UNITS.name: rows},
            inputs,
            metadata={
                "files": [{"file": u.name, "upload": u.id, "units": u.taken} for u in newest],
                **_replaced(carbon, seen.state(UNITS.table, partition), newest),
            },
            figures={UNITS.name: figures(UNITS, rows)},
        )

    carbon.materialize([UNITS], years, this, report, build)


def _with_job(carbon: CarbonService, upload: Upload, year: int, job: int) -> pa.Table:
    rows = _of_year(carbon, upload, year)
    count = len(rows)
    rows = rows.append_column("institution", pa.repeat(upload.institution, count))
    return rows.append_column("last_seen_job_id", pa.repeat(pa.scalar(job, pa.int64()), count))


def ingest_factors(carbon: CarbonService, years: Sequence[str], this: Attempt, report: Notify) -> None:
    """Uploads are added in their order: a factor's history is theirs. Where the tables are what we made of
    the first of them, only the others are added; else all are, from the first on."""

    def build(request: Request) -> Built | NotBuilt:
        partition, year = request.partition, int(request.partition)
        seen = _observe_factors(carbon, partition)
        inputs = factors_inputs(seen, year)
        factors, versions = (seen.state(t.table, partition) for t in (FACTORS, FACTOR_VERSIONS))
        if request.is_done(inputs, factors, versions):
            return NotBuilt(partition, skip=DONE_MEANWHILE)
        _refuse_not_indexed(seen)
        if not inputs:
            return NotBuilt(partition, skip=NOTHING_TO_DO)
        wanted = [int(number) for number in inputs["uploads"].split(",")]
        done = _already(factors, versions, wanted)
        known, newest_uploads = YearOfFactors.empty(), dict[str, int]()
        if done:
            known = YearOfFactors(carbon.factors(year), carbon.rows(FACTOR_VERSIONS, [partition]))
            newest_uploads = factors.detail.get(NEWEST_UPLOADS, {})
        before = known.factors
        by_type: dict[str, list[str]] = {}
        ingested = factors.inputs.get("uploads", "").split(",")
        jobs = carbon.store.uploads.ingested_by(request.work.id, wanted, year)
        uploads = {u.id: u for u in _uploads(carbon, wanted[len(done) :])}
        for number in wanted[len(done) :]:
            origin = Origin(jobs[number], uploads[number].file, uploads[number].moment)
            incoming = _of_year(carbon, uploads[number], year)
            after = merged(year, known, incoming, origin)
            newest_uploads = newest_by_type(newest_uploads, incoming, number)
            # A rebuild names no pipelines for uploads that had been ingested before.
            for name in changed_types(known.factors, after.factors) if str(number) not in ingested else ():
                by_type.setdefault(name, []).append(uploads[number].pipeline_id)
            known = after
        by_type = _with_carried(seen, partition, by_type)
        return Built(
            partition,
            {FACTOR_VERSIONS.name: known.versions, FACTORS.name: known.factors},
            inputs,
            {"pipelines_by_type": by_type, DIGESTS: digests(known.factors), NEWEST_UPLOADS: newest_uploads},
            _factor_changes(before, known.factors),
            {
                FACTOR_VERSIONS.name: figures(FACTOR_VERSIONS, known.versions),
                FACTORS.name: figures(FACTORS, known.factors),
            },
        )

    carbon.materialize([FACTORS, FACTOR_VERSIONS], years, this, report, build)


def _observe_factors(carbon: CarbonService, year: str) -> Observed:
    by_type = [f"{name}|{year}" for name in carbon.catalogue.types]
    tables = {FACTORS.name: [year], FACTOR_VERSIONS.name: [year]}
    return carbon.observe_intake(tables | {DATA_ENTRIES.name: by_type, EMISSIONS.name: by_type})


def _with_carried(seen: Observed, year: str, by_type: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """By type, the pipelines that changed its factors last, with those of changes not calculated yet."""
    state = seen.state(FACTORS.table, year)
    known: Mapping[str, list[str]] = state.detail.get("pipelines_by_type", {})
    digests = seen.factor_digests.get(int(year), {})

    def is_seen(name: str) -> bool:
        return seen.state(EMISSIONS.table, f"{name}|{year}").inputs.get("factors") == digests.get(name)

    def is_awaited(name: str) -> bool:
        has_entries = seen.state(DATA_ENTRIES.table, f"{name}|{year}") != NOTHING
        return name not in by_type or (has_entries and not is_seen(name))

    carried = {name: names for name, names in known.items() if is_awaited(name)}
    return {
        name: sorted({*newest_pipelines(carried.get(name, ())), *by_type.get(name, ())})
        for name in carried.keys() | by_type.keys()
    }


def _already(factors: PartitionState, versions: PartitionState, wanted: Sequence[int]) -> list[int]:
    """The uploads that are in the tables, if these are what we recorded and the uploads begin like that."""
    if not (factors.untouched and versions.untouched):
        return []
    done = [int(n) for n in factors.inputs.get("uploads", "").split(",") if n]
    return done if list(wanted[: len(done)]) == done else []


def _factor_changes(before: pa.Table, after: pa.Table) -> dict[str, Any]:
    """Of each type, how many factors there are, are stale, were touched; and the first of these."""
    tables = {"before": before, "after": after}
    listed = query(packaged(__file__, "factor_changes"), tables).drop_columns(["year"]).slice(0, 50)
    by_type = query(packaged(__file__, "factors_by_type"), tables)
    return {"factors_changed": by_type.to_pylist(), "factors_before_and_after": listed.to_pylist()}


def ingest_entries(carbon: CarbonService, partitions: Sequence[str], this: Attempt, report: Notify) -> None:
    def build(request: Request) -> Built | NotBuilt:
        partition = request.partition
        name, year = name_of(partition), year_of(partition)
        seen = carbon.observe_intake({DATA_ENTRIES.name: [partition], EMISSIONS.name: [partition]})
        inputs = entries_inputs(carbon.catalogue, seen, partition)
        old = seen.state(DATA_ENTRIES.table, partition)
        if request.is_done(inputs, old):
            return NotBuilt(partition, skip=DONE_MEANWHILE)
        newest = _uploads(carbon, (u.id for u in seen.newest_uploads("data", name, year)))
        _refuse_not_indexed(seen)
        if not newest:
            return NotBuilt(partition, skip=NOTHING_TO_DO)
        frames = []
        for upload in newest:
            rows = recalculated(carbon.catalogue.type(name), _of_year(carbon, upload, year))
            frames.append(rows.append_column("file", pa.repeat(upload.file, len(rows))))
        is_seen = seen.state(EMISSIONS.table, partition).inputs.get("entries") == str(old.version)
        rows = _shaped(DATA_ENTRIES, frames)
        return Built(
            partition,
            {DATA_ENTRIES.name: rows},
            inputs,
            metadata={
                "files": [{"file": u.name, "upload": u.id, "rows": u.taken} for u in newest],
                **_replaced(carbon, old, newest),
                "busiest_units": query(packaged(__file__, "busiest_units"), {"entries": rows}).to_pylist(),
            },
            figures={DATA_ENTRIES.name: figures(DATA_ENTRIES, rows)},
            carried=() if is_seen else newest_pipelines(old.pipelines),
        )

    carbon.materialize([DATA_ENTRIES], partitions, this, report, build)


def _replaced(carbon: CarbonService, before: PartitionState, newest: Sequence[Upload]) -> dict[str, Any]:
    """The files that the partition was made from before, with those that took their place."""
    new = {upload.scope: upload for upload in newest}
    gone = {int(n) for n in before.inputs.get("uploads", "").split(",") if n}.difference(u.id for u in newest)
    rows = [
        {
            "file": new[old.scope].name,
            "rows": new[old.scope].taken,
            "instead_of": old.name,
            "rows_before": old.taken,
        }
        for old in _uploads(carbon, gone)
        if old.scope in new
    ]
    return {"replaced": rows} if rows else {}


def _refuse_not_indexed(seen: Observed) -> None:
    """Raise here too: work may be older than the loss of the ledger, or come from a click."""
    if seen.not_indexed:
        raise NotIndexed(seen.not_indexed)


def _uploads(carbon: CarbonService, ids: Iterable[int]) -> list[Upload]:
    """Oldest first."""
    return carbon.store.uploads.find(ids=list(ids))[::-1]


def _of_year(carbon: CarbonService, upload: Upload, year: int) -> pa.Table:
    rows = carbon.staged_rows(upload)
    return rows.filter(pc.equal(rows.column("year"), year))


def _shaped(table: Table, frames: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([f.select(table.schema.names).cast(table.schema) for f in frames])
