"""Taking in what was uploaded: a partition becomes what the newest files of its places say. No Dagster."""

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
from domain.carbon.pipelines import newest_chains
from domain.carbon.plan import entries_inputs, factors_inputs, units_inputs, year_of
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTOR_VERSIONS, FACTORS, UNITS
from domain.shared.compute import packaged, query
from domain.shared.error import InfrastructureError
from domain.shared.state import PartitionState
from domain.shared.table import Table
from resources.objects.staging import LOST
from services.carbon.making import Built, Tell, make
from services.carbon.service import DIGESTS, CarbonService, NotIndexed

if TYPE_CHECKING:
    from resources.ledger.uploads import Upload


def take_in_units(carbon: CarbonService, years: Sequence[str], run_id: str, tell: Tell) -> None:
    def build(partition: str, work_id: int) -> Built | None:
        year = int(partition)
        seen = carbon.observe()
        inputs = units_inputs(seen, year)
        newest = _uploads(carbon, (u.id for u in seen.newest_uploads("units", "", year)))
        _refuse_not_indexed(seen)
        if not newest:
            return None
        jobs = _taken(carbon, newest, work_id, year)
        frames = [_with_job(carbon, u, year, jobs[u.id]) for u in newest]
        files = [{"file": u.name, "upload": u.id, "units": u.taken} for u in newest]
        return Built({UNITS.name: _shaped(UNITS, frames)}, inputs, metadata={"files": files})

    make(carbon, UNITS, years, run_id, tell, build)


def _taken(carbon: CarbonService, newest: Sequence[Upload], work_id: int, year: int) -> dict[int, int]:
    """By upload, the work that took it in. Those that it overtook before anybody looked end with it."""
    ids = [one.id for one in newest]
    carbon.ledger.pipelines.add(work_id, carbon.ledger.uploads.overtaken(ids, year))
    return carbon.ledger.uploads.taken_by(work_id, ids, year)


def _with_job(carbon: CarbonService, upload: Upload, year: int, job: int) -> pa.Table:
    rows = _of_year(carbon, upload, year)
    count = len(rows)
    rows = rows.append_column("institution", pa.repeat(upload.institution, count))
    return rows.append_column("last_seen_job_id", pa.repeat(pa.scalar(job, pa.int64()), count))


def take_in_factors(carbon: CarbonService, years: Sequence[str], run_id: str, tell: Tell) -> None:
    """Uploads are added in their order: a factor's history is theirs. Where the tables are what we made of
    the first of them, only the others are added; else all are, from the first on."""

    def build(partition: str, work_id: int) -> Built | None:
        year = int(partition)
        seen = carbon.observe()
        inputs = factors_inputs(seen, year)
        _refuse_not_indexed(seen)
        if not inputs:
            return None
        wanted = [int(number) for number in inputs["uploads"].split(",")]
        done = _already(
            seen.state(FACTORS.table, partition), seen.state(FACTOR_VERSIONS.table, partition), wanted
        )
        known, speaking = YearOfFactors.empty(), dict[str, int]()
        if done:
            known = YearOfFactors(carbon.factors(year), carbon.rows(FACTOR_VERSIONS, [partition]))
            speaking = seen.state(FACTORS.table, partition).detail.get(NEWEST_UPLOADS, {})
        before = known.factors
        by_type: dict[str, list[str]] = {}
        told = seen.state(FACTORS.table, partition).inputs.get("uploads", "").split(",")
        jobs = carbon.ledger.uploads.taken_by(work_id, wanted, year)
        uploads = {u.id: u for u in _uploads(carbon, wanted[len(done) :])}
        for number in wanted[len(done) :]:
            origin = Origin(jobs[number], uploads[number].file, uploads[number].moment)
            incoming = _of_year(carbon, uploads[number], year)
            after, speaking = (
                merged(year, known, incoming, origin),
                newest_by_type(speaking, incoming, number),
            )
            # Of a rebuild, what had been taken in before is nobody's news.
            for name in changed_types(known.factors, after.factors) if str(number) not in told else ():
                by_type.setdefault(name, []).append(uploads[number].pipeline_id)
            known = after
        by_type = _with_carried(seen, partition, by_type)
        return Built(
            {FACTOR_VERSIONS.name: known.versions, FACTORS.name: known.factors},
            inputs,
            {"pipelines_by_type": by_type, DIGESTS: digests(known.factors), NEWEST_UPLOADS: speaking},
            _factors_told(before, known.factors),
        )

    make(carbon, FACTORS, years, run_id, tell, build)


def _with_carried(seen: Observed, year: str, by_type: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """By type, the chains that changed its factors last, with those whose change no calculation has seen."""
    state = seen.state(FACTORS.table, year)
    known: Mapping[str, list[str]] = state.detail.get("pipelines_by_type", {})
    digests = seen.factor_digests.get(int(year), {})

    def is_seen(name: str) -> bool:
        return seen.state(EMISSIONS.table, f"{name}|{year}").inputs.get("factors") == digests.get(name)

    def is_awaited(name: str) -> bool:
        return name not in by_type or (
            (DATA_ENTRIES.table, f"{name}|{year}") in seen.states and not is_seen(name)
        )

    carried = {name: chains for name, chains in known.items() if is_awaited(name)}
    return {
        name: sorted({*newest_chains(carried.get(name, ())), *by_type.get(name, ())})
        for name in carried.keys() | by_type.keys()
    }


def _already(factors: PartitionState, versions: PartitionState, wanted: Sequence[int]) -> list[int]:
    """The uploads that are in the tables, if these are what we recorded and the uploads begin like that."""
    if not (factors.untouched and versions.untouched):
        return []
    done = [int(n) for n in factors.inputs.get("uploads", "").split(",") if n]
    return done if list(wanted[: len(done)]) == done else []


def _factors_told(before: pa.Table, after: pa.Table) -> dict[str, Any]:
    """Of each type, how many factors there are, are stale, were touched; and the first of these."""
    tables = {"before": before, "after": after}
    listed = query(packaged(__file__, "factor_changes"), tables).drop_columns(["year"]).slice(0, 50)
    by_type = query(packaged(__file__, "factors_by_type"), tables)
    return {"factors_changed": by_type.to_pylist(), "factors_before_and_after": listed.to_pylist()}


def take_in_entries(carbon: CarbonService, partitions: Sequence[str], run_id: str, tell: Tell) -> None:
    def build(partition: str, work_id: int) -> Built | None:
        name, year = partition.split("|", 1)[0], year_of(partition)
        seen = carbon.observe()
        newest = _uploads(carbon, (u.id for u in seen.newest_uploads("data", name, year)))
        _refuse_not_indexed(seen)
        if not newest:
            return None
        _taken(carbon, newest, work_id, year)
        frames = []
        for upload in newest:
            rows = recalculated(carbon.catalogue.type(name), _of_year(carbon, upload, year))
            frames.append(rows.append_column("file", pa.repeat(upload.file, len(rows))))
        files = [{"file": u.name, "upload": u.id, "rows": u.taken} for u in newest]
        inputs = entries_inputs(carbon.catalogue, seen, partition)
        old = seen.state(DATA_ENTRIES.table, partition)
        is_seen = seen.state(EMISSIONS.table, partition).inputs.get("entries") == str(old.version)
        carried = () if is_seen else newest_chains(old.detail.get("pipelines", ()))
        shaped = _shaped(DATA_ENTRIES, frames)
        busiest = query(packaged(__file__, "busiest_units"), {"entries": shaped}).to_pylist()
        metadata = {"files": files, "busiest_units": busiest}
        return Built({DATA_ENTRIES.name: shaped}, inputs, metadata=metadata, carried=carried)

    make(carbon, DATA_ENTRIES, partitions, run_id, tell, build)


def _refuse_not_indexed(seen: Observed) -> None:
    """Raise here too: work may be older than the loss of the ledger, or come from a click."""
    if seen.not_indexed:
        raise NotIndexed(seen.not_indexed)


def _uploads(carbon: CarbonService, ids: Iterable[int]) -> list[Upload]:
    """Oldest first."""
    return carbon.ledger.uploads.find(ids=list(ids))[::-1]


def _of_year(carbon: CarbonService, upload: Upload, year: int) -> pa.Table:
    try:
        rows = carbon.staging.rows(upload.pipeline_id)
    except InfrastructureError as error:
        if error.reason_code != LOST:
            raise
        told = f"{upload.name} (upload {upload.id}): {error.message}"
        raise InfrastructureError(told, reason_code=error.reason_code, remedy=error.remedy) from error
    return rows.filter(pc.equal(rows.column("year"), year))


def _shaped(table: Table, frames: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([f.select(table.schema.names).cast(table.schema) for f in frames])
